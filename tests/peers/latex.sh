#!/usr/bin/env bash
# Optional suite: other programs read what we draw. LaTeX compiles every table, xmllint reads every SVG, poppler every PDF.
# usage: latex.sh OUT, where OUT is out/<profile> of a run with figures and tables. Tools come from Debian's packages
# texlive-latex-recommended, libxml2-utils and poppler-utils; what is not there is skipped, and said.
set -euo pipefail
out=$(cd "${1:?usage: latex.sh out/<profile>}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
need() { command -v "$1" >/dev/null || { echo "skipped: $2, because there is no $1 (Debian: $3)"; return 1; }; }

if need pdflatex "LaTeX tables" texlive-latex-recommended; then
    {
        printf '\\documentclass[twocolumn]{article}\n\\usepackage[utf8]{inputenc}\n\\usepackage{booktabs,array,graphicx}\n'
        printf '\\usepackage[margin=1cm]{geometry}\n\\begin{document}\n'
        for table in "$out"/tables/*.tex; do printf '\\input{%s}\\clearpage\n' "$table"; done
        printf '\\end{document}\n'
    } >"$work/all.tex"
    (cd "$work" && pdflatex -halt-on-error -interaction=nonstopmode all.tex >log.txt) || { tail -30 "$work/log.txt"; exit 1; }
    if grep -q 'Undefined\|LaTeX Error' "$work/log.txt"; then grep 'Undefined\|LaTeX Error' "$work/log.txt"; exit 1; fi
    echo "LaTeX: $(ls "$out"/tables/*.tex | wc -l) tables compile"
fi
if need xmllint "SVG" libxml2-utils; then
    for figure in "$out"/figures/*.svg; do xmllint --noout --nonet "$figure"; done
    echo "xmllint: $(ls "$out"/figures/*.svg | wc -l) SVG figures are well-formed"
fi
if need pdfinfo "PDF" poppler-utils; then
    for figure in "$out"/figures/*.pdf; do
        pages=$(pdfinfo "$figure" | sed -n 's/^Pages: *//p')
        [ "$pages" = 1 ] || { echo "$figure has $pages pages" >&2; exit 1; }
        pdftoppm -r 60 -png "$figure" "$work/page"
        # Text must be text, in the embedded fonts.
        pdffonts "$figure" | grep -q 'Roboto' || { echo "$figure does not embed its font" >&2; exit 1; }
    done
    echo "poppler: $(ls "$out"/figures/*.pdf | wc -l) PDF figures open, one page each, fonts embedded"
fi
