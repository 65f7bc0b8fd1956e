"use strict";
// Tables are sorted by the number in data-value, or else by the text. Empty cells stay last in both directions.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    heading.querySelector("button").addEventListener("click", () => {
      const first = heading.classList.contains("number") ? "descending" : "ascending";
      const second = first === "ascending" ? "descending" : "ascending";
      const direction = heading.getAttribute("aria-sort") === first ? second : first;
      for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", direction);
      const keyOf = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const compare = (one, other) => {
        if (one === "" || other === "") return (one === "") - (other === "");
        const [a, b] = [Number(one), Number(other)];
        const order = Number.isNaN(a) || Number.isNaN(b) ? one.localeCompare(other, "en", { numeric: true }) : a - b;
        return direction === "ascending" ? order : -order;
      };
      const rows = [...body.rows].map((row) => [keyOf(row), row]);
      rows.sort((one, other) => compare(one[0], other[0]));
      body.append(...rows.map(([, row]) => row));
    });
  });
}

// Plots are drawn once. Their colours and sizes are set again when the colour scheme changes, when the window becomes
// narrow, and when the page is printed.
const dark = matchMedia("(prefers-color-scheme: dark)");
const plots = [];

function paint(layout, printing) {
  const isDark = dark.matches && !printing;
  const [text, grid, background] = isDark ? ["#e7e9eb", "#343a41", "#1b1f24"] : ["#1b2127", "#e3e5e0", "#ffffff"];
  const narrow = innerWidth < 576 && !printing;
  const painted = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    "font.color": text, "font.family": getComputedStyle(document.body).fontFamily, "font.size": narrow ? 11 : 13,
    "hoverlabel.bgcolor": background, "hoverlabel.bordercolor": grid, "hoverlabel.font.color": text, "hoverlabel.align": "left",
    "modebar.bgcolor": "rgba(0,0,0,0)", "modebar.color": "#9aa3ad", "modebar.activecolor": text,
  };
  for (const axis of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))) {
    painted[`${axis}.gridcolor`] = grid;
    painted[`${axis}.linecolor`] = grid;
    painted[`${axis}.zerolinecolor`] = grid;
  }
  return painted;
}

addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});

const repaint = (printing) => {
  for (const plot of plots) {
    if (printing) {
      // The printed width differs from that of the window, and the browser does not wait for a responsive resize.
      Plotly.relayout(plot, { ...paint(plot.layout, true), width: 680, autosize: false });
    } else {
      Plotly.relayout(plot, { ...paint(plot.layout, false), width: null, autosize: true });
    }
  }
};

function showCommand(plot, event) {
  const line = plot.closest("figure").querySelector(".command");
  const data = event.points[0]?.customdata;
  if (!Array.isArray(data) || typeof data[1] !== "string") return;
  line.querySelector("code").textContent = data[1];
  line.querySelector("button").textContent = "copy";
  line.hidden = false;
}

async function copy(line) {
  const button = line.querySelector("button");
  try {
    await navigator.clipboard.writeText(line.querySelector("code").textContent);
    button.textContent = "copied";
  } catch {
    getSelection().selectAllChildren(line.querySelector("code"));
    button.textContent = "selected";
  }
}

async function draw() {
  for (const script of document.querySelectorAll("script[data-figure]")) {
    const plot = document.getElementById(script.dataset.figure);
    const { data, layout } = JSON.parse(script.textContent);
    await Plotly.newPlot(plot, data, { ...layout, autosize: true }, {
      responsive: true, displaylogo: false, displayModeBar: innerWidth < 576 ? false : "hover",
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
    });
    await Plotly.relayout(plot, paint(plot.layout, false));
    plots.push(plot);
    plot.on("plotly_click", (event) => showCommand(plot, event));
    const line = plot.closest("figure").querySelector(".command");
    line.querySelector("button").onclick = () => copy(line);
  }
  dark.addEventListener("change", () => repaint(false));
  matchMedia("(max-width: 36rem)").addEventListener("change", () => repaint(false));
  addEventListener("beforeprint", () => repaint(true));
  addEventListener("afterprint", () => repaint(false));
  dispatchEvent(new Event("drawn"));
  document.documentElement.dataset.drawn = String(plots.length);
}
draw();
