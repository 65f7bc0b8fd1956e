"use strict";
// Draw every figure of a page as SVG for print: white, with a legend. `print_files.py` sets WIDTH and HEIGHT.
(async () => {
  for (const source of document.querySelectorAll("script[data-figure]")) {
    const { data, layout } = JSON.parse(source.textContent);
    const named = new Set(data.filter((one) => one.name && one.showlegend !== false).map((one) => one.name));
    Object.assign(layout, { paper_bgcolor: "#ffffff", plot_bgcolor: "#ffffff" });
    const size = { width: WIDTH, height: layout.height ?? HEIGHT };
    Object.assign(layout, size);
    layout.showlegend = layout.showlegend ?? named.size > 1;
    layout.font = { ...layout.font, color: "#1b2127", family: "sans-serif", size: 13 };
    // The reader of a printed page cannot ask for the legend: it needs room above the plot.
    if (layout.showlegend) layout.margin = { ...layout.margin, t: 16 };
    for (const key of Object.keys(layout).filter((name) => /^[xy]axis\d*$/.test(name))) {
      Object.assign(layout[key], { gridcolor: "#e3e5e0", linecolor: "#e3e5e0" });
    }
    const address = await Plotly.toImage({ data, layout }, { format: "svg", ...size });
    const drawn = document.createElement("pre");
    drawn.dataset.drawn = source.dataset.figure;
    drawn.textContent = decodeURIComponent(address.slice(address.indexOf(",") + 1));
    document.body.append(drawn);
  }
})();
