"use strict";
// The plots of the page. Each plot keeps its source, the figure as the report wrote it, and is drawn from it again when
// the reader hides a method or switches an axis, when the colour scheme or the width changes, and when the page is printed.
// reports/pages/figures.py describes what the traces say about themselves in `meta`.
const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 36rem)");
const plots = [];
// The names that the reader has hidden. They are hidden in all plots of the page.
const hidden = new Set();

const DASHES = { dash: "6 3", dot: "2 2.5", dashdot: "6 2 2 2", longdash: "9 3", longdashdot: "9 2 2 2" };
const SYMBOLS = {
  circle: "M8.5 6a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z", square: "M8.7 2.7h6.6v6.6h-6.6z", diamond: "M12 1.5L16.5 6 12 10.5 7.5 6z",
  "triangle-up": "M12 2l4.3 7.5h-8.6z", x: "M8 3.8L9.8 2 12 4.2 14.2 2 16 3.8 13.8 6 16 8.2 14.2 10 12 7.8 9.8 10 8 8.2 10.2 6z",
  cross: "M10.7 1.5h2.6v3.2h3.2v2.6h-3.2v3.2h-2.6V7.3H7.5V4.7h3.2z",
};
const ARRAYS = {
  f8: Float64Array, f4: Float32Array, i4: Int32Array, u4: Uint32Array, i2: Int16Array, u2: Uint16Array, i1: Int8Array, u1: Uint8Array,
};

// Arrays of numpy arrive as base64 text.
function unpacked(array) {
  if (array?.bdata === undefined) return array;
  const bytes = Uint8Array.from(atob(array.bdata), (letter) => letter.charCodeAt(0));
  return [...new ARRAYS[array.dtype](bytes.buffer)];
}

const nameOf = (trace) => trace.legendgroup ?? trace.name;
const plotsOf = (figure) => plots.filter((plot) => figure.contains(plot));
const axesOf = (layout) => Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key));
const isMap = (plot) => plot.source.layout.yaxis?.scaleanchor !== undefined;

// --- what is drawn

function numbersOn(plot, letter) {
  return plot.source.data.flatMap((trace) => (trace.hoverinfo === "skip" ? [] : [...(trace[letter] ?? [])]))
    .filter((value) => value !== null);
}

// Return whether an axis can be switched between linear and logarithmic, and whether it makes a difference.
function switchOf(plot, letter) {
  const { data, layout } = plot.source;
  const axis = layout[`${letter}axis`] ?? {};
  const numbers = numbersOn(plot, letter);
  if (isMap(plot) || axesOf(layout).length > 2 || !numbers.length) return { able: false, wanted: false };
  if (axis.type === "log") return { able: true, wanted: true };
  const fixed = axis.range || axis.ticktext || axis.type === "category" || data.some((trace) => trace.type === "bar");
  if (fixed || numbers.some((value) => typeof value !== "number" || value < 0)) return { able: false, wanted: false };
  const positive = numbers.filter((value) => value > 0);
  return { able: positive.length > 0, wanted: Math.max(...positive) > 10 * Math.min(...positive) };
}

const isSwitched = (plot, letter) => plot.switched.has(letter) && plot.switches[letter].able;
const isLog = (plot, letter) => (plot.source.layout[`${letter}axis`]?.type === "log") !== isSwitched(plot, letter);

// A logarithmic axis shows 0 at the power of ten below the smallest positive value; the label of that tick is 0.
function logTicks(plot, letter) {
  const numbers = numbersOn(plot, letter);
  const positive = numbers.filter((value) => value > 0);
  const [low, high] = [Math.log10(Math.min(...positive)), Math.log10(Math.max(...positive))];
  const zero = numbers.length > positive.length ? 10 ** (Math.ceil(low) - 1) : null;
  const steps = high - low <= 2 ? [1, 2, 5] : [1];
  const percent = plot.source.layout[`${letter}axis`]?.tickformat?.includes("%");
  const label = (value) => (percent ? `${Number((100 * value).toPrecision(6))}%` : String(Number(value.toPrecision(6))));
  const ticks = zero === null ? [] : [[zero, percent ? "0%" : "0"]];
  for (let power = Math.floor(low) - 1; power <= Math.ceil(high); power++) {
    for (const step of steps) {
      const value = Number(`${step}e${power}`);
      if (zero === null || value > 1.5 * zero) ticks.push([value, label(value)]);
    }
  }
  return { zero, tickvals: ticks.map(([value]) => value), ticktext: ticks.map(([, text]) => text) };
}

// Keep some of the points of a trace: of all its arrays that have one value per point.
function keepPoints(trace, kept) {
  const copy = {};
  for (const [key, value] of Object.entries(trace)) {
    if (Array.isArray(value) && value.length === kept.length) copy[key] = value.filter((_, at) => kept[at]);
    else copy[key] = value?.constructor === Object && key !== "meta" ? keepPoints(value, kept) : value;
  }
  return copy;
}

function dataOf(plot) {
  return plot.source.data.map((source) => {
    let trace = { ...source };
    for (const letter of "xy") {
      if (!isSwitched(plot, letter)) continue;
      if (!isLog(plot, letter)) trace[letter] = source.meta?.[letter] ?? source[letter];
      else if (source[letter]) {
        const { zero } = logTicks(plot, letter);
        trace[letter] = source[letter].map((value) => (value !== null && value <= 0 ? zero : value));
      }
    }
    const methods = source.meta?.methods;
    if (methods?.some((name) => hidden.has(name))) trace = keepPoints(trace, methods.map((name) => !hidden.has(name)));
    if (hidden.has(nameOf(source))) trace.visible = false;
    return trace;
  });
}

// Break the title of an axis into lines of a width in pixels.
function broken(text, width) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines.at(-1) && (lines.at(-1).length + word.length) * 7 > width) lines.push("");
    lines.push(`${lines.pop()} ${word}`.trim());
  }
  return lines.join("<br>");
}

function layoutOf(plot, printing) {
  const layout = structuredClone(plot.source.layout);
  const isDark = dark.matches && !printing;
  const [text, grid, background] = isDark ? ["#e7e9eb", "#343a41", "#1b1f24"] : ["#1b2127", "#e3e5e0", "#ffffff"];
  Object.assign(layout, {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, uirevision: "kept",
    hoverlabel: { bgcolor: background, bordercolor: grid, font: { color: text }, align: "left" },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: "#9aa3ad", activecolor: text },
    // The printed width differs from that of the window, and the browser does not wait for a responsive resize.
    ...(printing ? { width: 680, autosize: false } : { autosize: true }),
  });
  layout.font = {
    ...layout.font, color: text, family: getComputedStyle(document.body).fontFamily, size: narrow.matches && !printing ? 11 : 13,
  };
  // The buttons of plotly are above the plot, where there are some.
  if (plot.settings.displayModeBar && !plot.closest(".panels")) layout.margin.t = Math.max(layout.margin.t, 28);
  if (isMap(plot)) {
    // A map is not higher than it is wide; other parts of the plot have their share of the height.
    const [low, high] = layout.yaxis.domain ?? [0, 1];
    const { l, r, t, b } = layout.margin;
    layout.height = Math.min(layout.height, ((printing ? 680 : plot.clientWidth) - l - r) / (high - low) + t + b);
  }
  for (const key of axesOf(layout)) {
    Object.assign(layout[key], { gridcolor: grid, linecolor: grid, zerolinecolor: grid });
    const length = key.startsWith("x") ? (printing ? 680 : plot.clientWidth) : layout.height;
    if (layout[key].title?.text) layout[key].title.text = broken(layout[key].title.text, length - 100);
  }
  for (const letter of "xy") {
    const axis = layout[`${letter}axis`];
    if (!axis || !isSwitched(plot, letter)) continue;
    const log = isLog(plot, letter);
    for (const key of ["range", "dtick", "tick0"]) delete axis[key];
    if (axis.ticktext) delete axis.tickvals;
    delete axis.ticktext;
    // A zoom belongs to one type of axis only.
    Object.assign(axis, { type: log ? "log" : "linear", autorange: true, uirevision: String(log) });
    if (log) {
      const { tickvals, ticktext } = logTicks(plot, letter);
      if (!axis.tickvals) Object.assign(axis, { tickvals, ticktext });
    } else axis.rangemode = "tozero";
  }
  return layout;
}

const redraw = (which, printing = false) =>
  Promise.all(which.map((plot) => Plotly.react(plot, dataOf(plot), layoutOf(plot, printing), plot.settings)));

// --- the legend, which hides and shows

function swatchOf(trace) {
  const first = (colour) => (Array.isArray(colour) ? colour[0] : colour);
  const point = first(trace.marker?.color ?? trace.line?.color);
  const mode = trace.mode ?? "lines";
  const filled = trace.type === "bar" || trace.type === "box" || trace.fill;
  let shapes = "";
  if (filled) shapes = `<rect x="5" y="1" width="14" height="10" rx="2" fill="${trace.fill ? trace.fillcolor : point}"/>`;
  else {
    if (mode.includes("lines")) {
      const width = Math.min(trace.line?.width ?? 2, 5);
      shapes += `<path d="M0 6h24" fill="none" stroke="${first(trace.line?.color)}" stroke-width="${width}" stroke-dasharray="${DASHES[trace.line?.dash] ?? ""}"/>`;
    }
    if (mode.includes("markers")) shapes += `<path d="${SYMBOLS[trace.marker?.symbol] ?? SYMBOLS.circle}" fill="${point}"/>`;
  }
  return `<svg width="24" height="12" viewBox="0 0 24 12" aria-hidden="true">${shapes}</svg>`;
}

const listedIn = (plot) => plot.source.data.filter((trace) => trace.name && trace.showlegend !== false);
const swatchesOf = (plot) => listedIn(plot).map((trace) => [nameOf(trace), swatchOf(trace)]).reverse();

function namesOf(plot) {
  return [...new Set([...listedIn(plot).map(nameOf), ...plot.source.data.flatMap((trace) => trace.meta?.methods ?? [])])];
}

function hide(names, isHidden) {
  for (const name of names) isHidden ? hidden.add(name) : hidden.delete(name);
  for (const button of document.querySelectorAll(".legend button")) {
    button.setAttribute("aria-pressed", String(!hidden.has(button.value)));
  }
  redraw(plots.filter((plot) => namesOf(plot).some((name) => names.includes(name))));
}

function legendOf(figure) {
  const names = [...new Set(plotsOf(figure).flatMap(namesOf))];
  const swatches = new Map(plotsOf(figure).flatMap(swatchesOf));
  const legend = document.createElement("div");
  legend.className = "legend";
  legend.role = "group";
  legend.ariaLabel = "Show or hide, in all plots";
  for (const name of names) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", value: name, title: "Click: hide or show in all plots. Double-click: show only this." });
    button.setAttribute("aria-pressed", "true");
    button.innerHTML = swatches.get(name) ?? "";
    button.append(Object.assign(document.createElement("span"), { textContent: name }));
    button.onclick = () => hide([name], !hidden.has(name));
    button.ondblclick = () => {
      const others = names.filter((other) => other !== name);
      const alone = others.every((other) => hidden.has(other));
      hide([name], false);
      hide(others, !alone);
    };
    legend.append(button);
  }
  return legend;
}

// --- the switches of the axes and the data

function buttonOf(text, title, action) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", textContent: text, title, ariaLabel: title, onclick: () => action(button) });
  return button;
}

function switchesOf(figure) {
  const inside = plotsOf(figure);
  return [..."xy"].filter((letter) => inside.some((plot) => plot.switches[letter].wanted)).map((letter) => {
    const chosen = inside.filter((plot) => plot.switches[letter].able);
    const state = (button) => button.setAttribute("aria-pressed", String(chosen.some((plot) => isLog(plot, letter))));
    const axis = letter === "x" ? "horizontal" : "vertical";
    const button = buttonOf(`log ${letter}`, `Logarithmic ${axis} axis`, () => {
      for (const plot of chosen) plot.switched.delete(letter) || plot.switched.add(letter);
      state(button);
      redraw(chosen);
    });
    state(button);
    return button;
  });
}

// Return the data of a figure as CSV: one row per point, with exact values, hidden methods included.
function csvOf(figure) {
  const rows = [];
  const text = (html) => new DOMParser().parseFromString(html ?? "", "text/html").body.textContent;
  for (const plot of plotsOf(figure)) {
    const panel = plot.parentNode.querySelector("h4")?.textContent;
    for (const trace of plot.source.data.filter((one) => one.hoverinfo !== "skip")) {
      const values = { x: trace.meta?.x ?? trace.x, y: trace.meta?.y ?? trace.y };
      const methods = trace.meta?.methods;
      for (let at = 0; at < Math.max(values.x?.length ?? 0, values.y?.length ?? 0); at++) {
        const row = {};
        if (panel) row.panel = panel;
        if (trace.name) row.series = text(trace.name);
        if (methods) row.method = methods[at];
        for (const letter of "xy") {
          const axis = plot.source.layout[(trace[`${letter}axis`] ?? letter).replace(letter, `${letter}axis`)];
          const title = text(axis?.title?.text) || (panel && letter === "y" ? "value" : letter);
          if (values[letter] && !(methods && title === letter)) row[title] = values[letter][at];
        }
        for (const [name, column] of Object.entries(trace.meta?.columns ?? {})) row[name] = column[at];
        const command = trace.customdata?.[at]?.[1];
        if (typeof command === "string") row.command = command;
        rows.push(row);
      }
    }
  }
  const names = [...new Set(rows.flatMap(Object.keys))];
  const cell = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  return [names, ...rows.map((row) => names.map((name) => row[name]))]
    .map((line) => line.map((value) => cell(String(value ?? ""))).join(",") + "\n").join("");
}

function download(figure) {
  const number = [...document.querySelectorAll("figure.plot")].indexOf(figure) + 1;
  const slug = document.title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csvOf(figure)], { type: "text/csv;charset=utf-8" }));
  link.download = `${slug}-figure-${number}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// --- the command of a point

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

// --- the start

function prepare() {
  for (const script of document.querySelectorAll("script[data-figure]")) {
    const plot = document.getElementById(script.dataset.figure);
    plot.source = JSON.parse(script.textContent);
    for (const trace of plot.source.data) {
      for (const letter of "xy") if (trace[letter]) trace[letter] = unpacked(trace[letter]);
    }
    plot.switched = new Set();
    plot.switches = { x: switchOf(plot, "x"), y: switchOf(plot, "y") };
    plot.settings = {
      responsive: true, displaylogo: false, displayModeBar: narrow.matches ? false : "hover",
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
    };
    if (isMap(plot)) plot.style.minHeight = "";
    plots.push(plot);
  }
  for (const figure of document.querySelectorAll("figure.plot")) {
    const tools = figure.querySelector(".tools");
    const buttons = document.createElement("div");
    buttons.className = "switches";
    const data = buttonOf("CSV", "Download the data of this figure as CSV", () => download(figure));
    buttons.append(...switchesOf(figure), data);
    tools.append(legendOf(figure), buttons);
    const line = figure.querySelector(".command");
    line.querySelector("button").onclick = () => copy(line);
  }
}

async function draw() {
  prepare();
  for (const plot of plots) {
    await Plotly.newPlot(plot, dataOf(plot), layoutOf(plot, false), plot.settings);
    plot.on("plotly_click", (event) => showCommand(plot, event));
  }
  let waiting;
  const later = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => redraw(plots), 100);
  };
  dark.addEventListener("change", () => redraw(plots));
  addEventListener("resize", later);
  addEventListener("beforeprint", () => redraw(plots, true));
  addEventListener("afterprint", () => redraw(plots));
  dispatchEvent(new Event("drawn"));
  document.documentElement.dataset.drawn = String(plots.length);
}
draw();
