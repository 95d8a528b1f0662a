// Theme, filter, details and hover values. Works on the page as it stands; run.js adds the facts of a run.
"use strict";
(() => {
  const $ = (selector, within) => (within || document).querySelector(selector);
  const all = (selector, within) => [...(within || document).querySelectorAll(selector)];

  // A page from disk may have no storage: the choice then lasts as long as the page.
  const themes = ["auto", "light", "dark"];
  let theme = "auto";
  try { theme = localStorage.getItem("repro-theme") || "auto"; } catch { /* no storage */ }
  const button = $("#theme");
  const dress = () => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = "Theme: " + theme;
  };
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem("repro-theme", theme); } catch { /* no storage */ }
    dress();
  });
  dress();

  const chosen = new Set();
  function filter() {
    const words = ($("#claim-search")?.value || "").toLowerCase().split(/\s+/).filter(Boolean);
    const group = $("#claim-group")?.value || "";
    const claims = all("tbody.claim");
    let shown = 0;
    for (const claim of claims) {
      claim.words ??= claim.firstElementChild.textContent.toLowerCase() + " " + claim.dataset.group;
      const hit = words.every((word) => claim.words.includes(word)) && (!chosen.size || chosen.has(claim.dataset.verdict))
        && (!group || claim.dataset.group === group);
      claim.hidden = !hit;
      shown += hit;
    }
    const count = $("#claim-count");
    if (count) count.textContent = shown === claims.length ? `${claims.length} claims` : `${shown} of ${claims.length} claims`;
    const none = $("#no-claims");
    if (none) none.hidden = shown > 0;
  }
  function open(more, wanted) {
    const detail = document.getElementById(more.getAttribute("aria-controls"));
    const shown = wanted ?? more.getAttribute("aria-expanded") !== "true";
    more.setAttribute("aria-expanded", shown);
    detail.hidden = !shown;
    if (shown) document.dispatchEvent(new CustomEvent("repro-open", { detail }));
  }

  // Events are caught on the document, so that a live page may swap its sections.
  document.addEventListener("input", (event) => {
    if (event.target.matches("#claim-search, #claim-group")) filter();
  });
  document.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("click", (event) => {
    const chip = event.target.closest(".chip");
    if (chip) {
      const verdict = chip.dataset.verdict;
      if (chosen.has(verdict)) chosen.delete(verdict); else chosen.add(verdict);
      chip.setAttribute("aria-pressed", chosen.has(verdict));
      filter();
    }
    const more = event.target.closest("button.more");
    if (more) open(more);
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      $("#claim-search")?.focus();
    } else if (event.key === "Escape" && event.target.id === "claim-search") {
      event.target.value = "";
      filter();
    }
  });
  function follow() {
    const claim = location.hash.startsWith("#claim-") && document.getElementById(location.hash.slice(1));
    if (!claim) return;
    if (claim.hidden) {
      chosen.clear();
      all(".chip").forEach((chip) => chip.setAttribute("aria-pressed", "false"));
      $("#claim-search").value = "";
      $("#claim-group").value = "";
      filter();
      claim.scrollIntoView();
    }
  }
  addEventListener("hashchange", follow);
  follow();

  // Paper has no triangles to click: tables that are folded away unfold for printing.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details.table:not([open])");
    for (const table of folded) table.open = true;
  });
  addEventListener("afterprint", () => { for (const table of folded) table.open = false; });

  // Values of marks: by pointer, or by arrow keys in a picture that has the focus.
  const tip = $("#tip");
  let marked = null;
  function show(mark, x, y) {
    marked?.classList.remove("on");
    marked = mark;
    if (!mark) { tip.hidden = true; return; }
    mark.classList.add("on");
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - width - 8)) + "px";
    tip.style.top = Math.max(4, y + 18 + height > innerHeight ? y - height - 12 : y + 18) + "px";
  }
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest?.("[data-tip]");
    if (mark || (marked && event.pointerType !== "")) show(mark, event.clientX, event.clientY);
  }, { passive: true });
  document.addEventListener("scroll", () => show(null), { passive: true });
  document.addEventListener("keydown", (event) => {
    const paper = event.target.closest?.(".sheet");
    if (!paper) return;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -1e9, End: 1e9 }[event.key];
    if (event.key === "Escape") show(null);
    if (!step) return;
    const marks = all("[data-tip]", paper);
    if (!marks.length) return;
    event.preventDefault();
    const at = marks.indexOf(marked);
    const next = marks[Math.max(0, Math.min(marks.length - 1, at + step))];
    const box = next.getBoundingClientRect();
    show(next, box.right, box.bottom);
  });
  document.addEventListener("focusout", (event) => { if (event.target.closest?.(".sheet")) show(null); });

  globalThis.repro = { $, all, filter: () => {
    all(".chip").forEach((chip) => chip.setAttribute("aria-pressed", chosen.has(chip.dataset.verdict)));
    filter();
  } };
})();
