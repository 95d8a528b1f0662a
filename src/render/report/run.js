// The facts of a run: how nodes stand, what stands behind a figure, what it cost. On a page served by `repro ui` it goes on asking.
"use strict";
(() => {
  const { $, all } = globalThis.repro;
  let facts = JSON.parse($("#facts").textContent);
  const LIVE = facts?.live;

  /** An element; text is always text. */
  function el(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name === "class") node.className = value;
      else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
    return node;
  }
  const count = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
  function time(seconds) {
    if (seconds === null || seconds === undefined) return "";
    if (seconds < 0.0995) return `${Math.round(seconds * 1000)} ms`;
    if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
    const whole = Math.round(seconds);
    const two = (number) => String(number).padStart(2, "0");
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.floor(whole / 60)} m ${two(whole % 60)} s`;
    if (whole < 86400) return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} m`;
    return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
  }
  const moment = (ms) => new Date(ms).toISOString().slice(0, 19).replace("T", " ") + " UTC";
  const STATES = {
    ran: "ran in this run", cached: "cached", running: "running", failed: "failed", blocked: "blocked by a failure",
    stale: "to be run", waits: "waits for others",
  };
  const point = (node) => (node.id.includes("/") ? node.id.slice(node.id.indexOf("/") + 1) : node.id);
  const done = (node) => node.s === "ran" || node.s === "cached";

  /** All nodes that these read, and themselves. */
  function closure(starts) {
    const seen = new Set(starts);
    const waiting = [...starts];
    while (waiting.length) for (const from of facts.nodes[waiting.pop()].r) if (!seen.has(from)) { seen.add(from); waiting.push(from); }
    return [...seen].sort((a, b) => a - b);
  }

  /** The nodes behind a figure or a claim: those that measured its tables, with all they read; else all behind `own`. */
  function behind(own, tables) {
    const named = (table) => facts.stages.map((stage, at) => (stage.name === table ? at : -1)).filter((at) => at >= 0);
    const stages = new Set(tables.flatMap((table) => facts.tables[table] || named(table)));
    if (!stages.size) return closure(own);
    const measured = [];
    facts.nodes.forEach((node, at) => { if (stages.has(node.st)) measured.push(at); });
    return [...new Set([...closure(measured), ...own])].sort((a, b) => a - b);
  }

  /** What nodes of a stage share, with what is a node's own, level by level. */
  function merge(shared, own) {
    const plain = (value) => value && typeof value === "object" && !Array.isArray(value);
    const out = { ...shared };
    for (const [name, value] of Object.entries(own)) out[name] = plain(value) && plain(out[name]) ? merge(out[name], value) : value;
    return out;
  }
  const params = (node) => merge(facts.stages[node.st].shared, node.x);

  /** A node's own parameters in a line: `model.loops 4, seed 1`. */
  function particular(node) {
    const words = [];
    const walk = (value, path) => {
      if (value && typeof value === "object" && !Array.isArray(value)) for (const [name, below] of Object.entries(value)) walk(below, path ? `${path}.${name}` : name);
      else words.push(`${path} ${typeof value === "string" ? value : JSON.stringify(value)}`);
    };
    walk(node.x, "");
    if (node.seed !== undefined) words.push(`seed ${node.seed}`);
    return words.join(", ");
  }

  function describe(at) {
    const node = facts.nodes[at];
    const stage = facts.stages[node.st];
    const rows = [
      ["State", STATES[node.s] + (node.what ? `: ${node.what}` : "")],
      ["Command", el("code", {}, `repro run ${node.id}${facts.profile_flag}`)],
      ["Key", node.k ? el("span", { class: "keyline" }, node.k) : "not known before what it reads is done"],
      ["Made", node.at ? `${moment(node.at)}, took ${time(node.t)}${node.h ? ` on ${node.h}` : ""}${node.th ? `, ${count(node.th, "thread")}` : ""}` : null],
      ["Seed", node.seed ?? null],
      ["Kind", `${stage.kind}, code ${stage.code.slice(0, 12)}${node.num ? `, numerics ${node.num}` : ""}`],
      ["Built with", node.at ? node.env || `repro ${facts.repro}, ${facts.rustc}, ${facts.target}` : null],
      ["Reads", node.r.length ? (node.r.length > 8 ? count(node.r.length, "node") : el("span", {}, node.r.map((from) =>
        el("button", { type: "button", class: "plain", onclick: () => select(from, true) }, facts.nodes[from].id)))) : null],
    ];
    return el("div", {},
      el("dl", { class: "facts" }, rows.filter(([, value]) => value !== null).map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
      el("details", { open: true }, el("summary", {}, "Parameters"), el("pre", {}, JSON.stringify(params(node), null, 1))));
  }

  /** What stands behind a figure or a claim, by stage. */
  function account(own, tables) {
    const nodes = behind(own, tables);
    const byStage = new Map();
    for (const at of nodes) {
      const stage = facts.nodes[at].st;
      if (!byStage.has(stage)) byStage.set(stage, []);
      byStage.get(stage).push(at);
    }
    const seconds = nodes.reduce((sum, at) => sum + (facts.nodes[at].t || 0), 0);
    const hosts = [...new Set(nodes.map((at) => facts.nodes[at].h).filter(Boolean))];
    const box = el("div", {},
      own.length ? el("p", {}, "Make it again: ", el("code", {}, `repro run ${facts.nodes[own[0]].id}${facts.profile_flag}`)) : null,
      el("p", { class: "quiet" }, `${count(nodes.length, "node")}, ${time(seconds)} of work${hosts.length ? ` on ${hosts.join(", ")}` : ""}; `
        + `repro ${facts.repro}, ${facts.rustc}, ${facts.target}.`));
    for (const [stage, list] of byStage) {
      const of = facts.stages[stage];
      const table = el("div", {});
      const inner = el("details", { ontoggle: () => {
        if (!inner.open || table.childElementCount) return;
        table.append(el("div", {}, el("p", { class: "quiet" }, "Code fingerprint ", el("code", {}, of.code), ". Parameters that all its nodes share:"),
          el("pre", { class: "log" }, JSON.stringify(of.shared, null, 1)),
          el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Nodes of ${of.name}` }, el("table", {},
            el("thead", {}, el("tr", {}, ["Node", "Key", "Took", "Its own parameters"].map((name) => el("th", { scope: "col" }, name)))),
            el("tbody", {}, list.slice(0, 200).map((at) => {
              const node = facts.nodes[at];
              return el("tr", {}, el("td", {}, el("button", { type: "button", class: "plain", onclick: () => select(at, true) }, point(node))),
                el("td", { class: "keyline" }, node.k.slice(0, 12)), el("td", {}, time(node.t)),
                el("td", { class: "keyline" }, particular(node)));
            })))),
          list.length > 200 ? el("p", { class: "quiet" }, `${count(list.length - 200, "more node")}; find them under Pipeline.`) : null));
      } }, el("summary", {}, `${of.name}: ${count(list.length, "node")}, kind ${of.kind}, code ${of.code.slice(0, 12)}`), table);
      box.append(inner);
    }
    return box;
  }

  /** The node that draws a figure: its last part bears the figure's name. */
  function drawing(figure) {
    const found = facts.nodes.findIndex((node) => node.id !== figure && node.id.endsWith("/" + figure) && facts.stages[node.st].kind === "plot");
    return found >= 0 ? [found] : [];
  }
  /** The node that judges: of the kind, or else the stage, of that name. */
  function judging() {
    const called = (field) => facts.nodes.findIndex((node) => facts.stages[node.st][field] === "verify");
    return [called("kind"), called("name")].filter((at) => at >= 0).slice(0, 1);
  }

  function fillBehind() {
    for (const details of all("details.behind")) {
      const fill = () => {
        if (details.open && facts) $(".body", details).replaceChildren(account(drawing(details.dataset.figure), details.dataset.tables.split(" ").filter(Boolean)));
      };
      details.addEventListener("toggle", fill);
      fill();
    }
  }
  document.addEventListener("repro-open", ({ detail }) => {
    const place = $(".behind", detail);
    if (place && facts && !place.childElementCount) {
      place.append(el("h3", {}, "What stands behind it"), account(judging(), place.dataset.tables.split(" ").filter(Boolean)));
    }
  });

  let chosen = -1;
  let squares = [];
  function select(at, jump) {
    squares[chosen]?.removeAttribute("aria-current");
    chosen = at;
    squares[at].setAttribute("aria-current", "true");
    const card = $("#node-card");
    card.hidden = false;
    card.replaceChildren(el("h3", {}, facts.nodes[at].id), describe(at));
    if (jump) { card.scrollIntoView({ block: "center" }); squares[at].focus({ preventScroll: true }); }
    if (LIVE) showLog(at, card);
  }

  function dressSquare(square, node) {
    square.className = "sq " + node.s;
    square.setAttribute("aria-label", `${node.id}: ${STATES[node.s]}`);
    square.dataset.tip = `${node.id}\n${STATES[node.s]}${done(node) && node.t !== undefined ? `, took ${time(node.t)}` : ""}`;
  }

  function tally(nodes) {
    const sums = {};
    for (const node of nodes) sums[node.s] = (sums[node.s] || 0) + 1;
    return sums;
  }

  function drawPipeline() {
    const body = $("#pipeline .body");
    squares = [];
    const states = tally(facts.nodes);
    const rows = facts.stages.map((stage, index) => {
      const nodes = facts.nodes.slice(stage.from, stage.to);
      const grid = el("div", { class: "squares", role: "group", "aria-label": `Nodes of ${stage.name}` });
      nodes.forEach((node, offset) => {
        const at = stage.from + offset;
        const square = el("button", { type: "button", tabindex: offset === 0 ? 0 : -1, onclick: () => select(at) });
        dressSquare(square, node);
        squares[at] = square;
        grid.append(square);
      });
      return el("div", { class: "stage-row", id: `stage-${index}` },
        el("div", {}, stage.name, el("span", { class: "kind" }, stage.about || stage.kind)), grid,
        el("div", { class: "sum" }, stageSum(nodes)));
    });
    const find = el("input", { class: "nodes-find", type: "search", placeholder: "Find nodes", "aria-label": "Find nodes", autocomplete: "off", oninput: (event) => {
      const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      facts.nodes.forEach((node, at) => squares[at].classList.toggle("dim", !words.every((word) => node.id.toLowerCase().includes(word) || node.s.startsWith(word))));
    } });
    body.replaceChildren(
      el("p", { class: "lead" }, `Profile ${facts.profile}: ${count(facts.nodes.length, "node")} in ${count(facts.stages.length, "stage")}. Each square is a node; choose one to see its key, parameters and command.`),
      el("div", { class: "dag", id: "dag", tabindex: 0, role: "region", "aria-label": "Graph of the stages" }),
      el("ul", { class: "legend" }, Object.keys(STATES).map((state) => el("li", {}, el("span", { class: "sq " + state }), ` ${STATES[state]} `, el("span", { class: "n", "data-state": state }, String(states[state] || 0)))), el("li", {}, find)),
      el("div", {}, rows),
      el("div", { class: "node-card", id: "node-card", hidden: true, "aria-live": "polite" }));
    drawDag();
    // One stop for the tab key per stage; arrows go on from there.
    body.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const at = squares.indexOf(event.target);
      if (!step || at < 0 || !squares[at + step]) return;
      event.preventDefault();
      squares[at + step].focus();
    });
  }
  function stageSum(nodes) {
    const sums = tally(nodes);
    const finished = (sums.ran || 0) + (sums.cached || 0);
    return `${finished}/${nodes.length} done${sums.failed ? `, ${sums.failed} failed` : ""}${sums.running ? `, ${sums.running} running` : ""}`;
  }
  // Drawn by the program, which writes every name as text.
  function drawDag() {
    const place = $("#dag");
    place.innerHTML = facts.dag;
    all(".box", place).forEach((box, at) => box.addEventListener("click", () => $(`#stage-${at}`).scrollIntoView({ block: "center" })));
  }

  function drawCosts() {
    const rows = facts.stages.map((stage) => {
      const nodes = facts.nodes.slice(stage.from, stage.to).filter((node) => node.t !== undefined && done(node));
      const seconds = nodes.reduce((sum, node) => sum + node.t, 0);
      const longest = nodes.reduce((best, node) => (!best || node.t > best.t ? node : best), null);
      return { stage, nodes, seconds, longest };
    });
    const total = rows.reduce((sum, row) => sum + row.seconds, 0);
    const most = Math.max(...rows.map((row) => row.seconds), 1e-9);
    $("#costs").hidden = false;
    $("#costs .body").replaceChildren(
      el("p", { class: "lead" }, `${time(total)} of work in all, counted once for every node, whenever it ran${facts.run ? `. The last run took ${time(facts.run.seconds)}: ${facts.run.text}.` : "."}`),
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Costs by stage" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Stage"), el("th", { scope: "col", class: "num" }, "Nodes done"), el("th", { scope: "col", class: "num" }, "Time"), el("th", { scope: "col" }, "Share"), el("th", { scope: "col" }, "Longest node"))),
        el("tbody", {}, rows.map((row) => el("tr", {}, el("th", { scope: "row" }, row.stage.name), el("td", { class: "num" }, `${row.nodes.length} of ${row.stage.to - row.stage.from}`),
          el("td", { class: "num" }, row.nodes.length ? time(row.seconds) : ""),
          el("td", {}, el("span", { class: "costbar", style: `width:${(12 * row.seconds / most).toFixed(2)}rem`, role: "img", "aria-label": `${Math.round(100 * row.seconds / Math.max(total, 1e-9))} percent` })),
          el("td", { class: "quiet" }, row.longest && row.nodes.length > 1 ? `${point(row.longest)}, ${time(row.longest.t)}` : "")))))));
  }

  function drawHead() {
    const line = $("#run-line");
    const bits = [`profile ${facts.profile}`, facts.made && `page of ${facts.made}`, `repro ${facts.repro}`, facts.host && `on ${facts.host}`];
    line.textContent = bits.filter(Boolean).join(" · ");
    const states = tally(facts.nodes);
    const open = facts.nodes.length - (states.ran || 0) - (states.cached || 0);
    $(".banner")?.remove();
    if (open && !facts.going) {
      const parts = ["failed", "blocked", "stale", "waits"].filter((state) => states[state]).map((state) => `${states[state]} ${STATES[state]}`);
      line.after(el("p", { class: "banner", role: "status" }, `Some of what is shown is of an earlier state: ${parts.join(", ")}.`));
    }
  }

  function draw() {
    drawHead();
    drawPipeline();
    drawCosts();
    fillBehind();
  }
  if (facts) draw();

  // From here on: only on a page that `repro ui` serves.
  if (!LIVE) return;
  const mark = $("#live-mark");
  // What happens now comes first on a live page, right below its title.
  const now = $("#now");
  const lift = () => $("#content > header").after(now);
  lift();
  mark.hidden = false;
  let seen = { facts: facts.version, content: facts.content, at: Date.now() };

  function spark(values) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 100 40");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    const known = values.filter((value) => Number.isFinite(value));
    svg.setAttribute("aria-label", known.length ? `loss, last ${known[known.length - 1]}, from ${known[0]}` : "no loss yet");
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const line = document.createElementNS(svg.namespaceURI, "polyline");
    line.setAttribute("points", known.map((value, at) => `${(100 * at / Math.max(1, known.length - 1)).toFixed(2)},${(38 - 36 * (value - low) / Math.max(1e-9, high - low)).toFixed(2)}`).join(" "));
    svg.append(line);
    return svg;
  }

  function drawNow(live) {
    const section = now;
    section.hidden = !live.going && !live.running.length;
    const states = tally(facts.nodes);
    const total = facts.nodes.length;
    const shares = [["ran", states.ran], ["cached", states.cached], ["failed", states.failed], ["running", states.running]];
    const left = total - (states.ran || 0) - (states.cached || 0);
    $(".body", section).replaceChildren(
      el("p", { class: "lead" }, `${total - left} of ${count(total, "node")} done`, live.eta ? `; about ${time(live.eta)} to go` : "", live.elapsed ? `; running for ${time(live.elapsed)}` : "", "."),
      el("div", { class: "progress", role: "progressbar", "aria-label": "Nodes done", "aria-valuemin": 0, "aria-valuemax": total, "aria-valuenow": total - left },
        shares.filter(([, number]) => number).map(([state, number]) => el("i", { class: state, style: `width:${100 * number / total}%` }))),
      el("ul", { class: "runs" }, live.running.map((run) => el("li", {},
        el("div", { class: "name" }, run.node),
        el("div", { class: "quiet" }, [run.total ? `${run.done.toLocaleString("en")} of ${run.total.toLocaleString("en")}` : null, run.note, time(run.seconds)].filter(Boolean).join(" · ")),
        run.losses.length > 1 ? spark(run.losses) : null,
        run.tail ? el("pre", { class: "log", tabindex: 0, "aria-label": `Log of ${run.node}` }, run.tail) : null))));
  }

  async function showLog(at, card) {
    const answer = await fetch(`/api/log?node=${encodeURIComponent(facts.nodes[at].id)}`);
    if (answer.ok && chosen === at) {
      const text = await answer.text();
      if (text) card.append(el("h4", {}, "Log"), el("pre", { class: "log", tabindex: 0 }, text));
    }
  }

  const LETTERS = { r: "ran", c: "cached", n: "running", f: "failed", b: "blocked", s: "stale", w: "waits" };
  function applyStates(letters) {
    const touched = new Set();
    facts.nodes.forEach((node, at) => {
      const state = LETTERS[letters[at]];
      if (state && state !== node.s) {
        node.s = state;
        dressSquare(squares[at], node);
        touched.add(node.st);
      }
    });
    for (const stage of touched) $(`#stage-${stage} .sum`).textContent = stageSum(facts.nodes.slice(facts.stages[stage].from, facts.stages[stage].to));
    const states = tally(facts.nodes);
    for (const place of all(".legend .n")) place.textContent = String(states[place.dataset.state] || 0);
  }

  async function look() {
    try {
      const live = await (await fetch("/api/live", { cache: "no-store" })).json();
      mark.textContent = live.going ? "live" : "idle";
      mark.classList.remove("gone");
      facts.going = live.going;
      // Keys and times are much to send: while a run goes on, states come every second and the rest every ten.
      if (live.version !== seen.facts && (!live.going || Date.now() - seen.at > 10000)) {
        const open = chosen >= 0 ? facts.nodes[chosen].id : null;
        facts = await (await fetch("/api/facts", { cache: "no-store" })).json();
        facts.going = live.going;
        seen.facts = live.version;
        seen.at = Date.now();
        chosen = -1;
        draw();
        const again = facts.nodes.findIndex((node) => node.id === open);
        if (again >= 0) select(again);
      }
      applyStates(live.states);
      if (live.dag !== facts.dag) { facts.dag = live.dag; drawDag(); }
      if (live.content !== seen.content) {
        const answer = await fetch("/api/content", { cache: "no-store" });
        if (answer.ok) {
          $("#content").innerHTML = await answer.text();
          lift();
          seen.content = live.content;
          globalThis.repro.filter();
          fillBehind();
        }
      }
      drawHead();
      drawNow(live);
    } catch {
      mark.textContent = "server gone";
      mark.classList.add("gone");
    }
    setTimeout(look, document.hidden ? 5000 : 1000);
  }
  look();
})();
