// Return what is wrong with the layout of a page, as a list of sentences.
(() => {
  const faults = [];
  const short = (text) => text.trim().replace(/\s+/g, " ").slice(0, 60);
  const seen = (element) => element.getClientRects().length > 0 && element.textContent.trim() !== "";
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)].filter(seen);
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) faults.push(`the page scrolls sideways: ${page.scrollWidth} > ${page.clientWidth}`);

  // Texts inside their boxes, and boxes inside the window.
  for (const box of all("h1, h2, h3, h4, p, li, figcaption, summary, th, td, dt, dd, nav a, button, .legend, .switches, .numbers div")) {
    if (getComputedStyle(box).display !== "inline" && box.scrollWidth > box.clientWidth + 1) {
      faults.push(`${box.tagName} is cut off: ${short(box.textContent)}`);
    }
    const { left, right } = box.getBoundingClientRect();
    if (!box.closest(".wide") && (left < -1 || right > innerWidth + 1)) faults.push(`${box.tagName} is outside: ${short(box.textContent)}`);
  }
  for (const table of all(".wide")) {
    const scrolls = table.scrollWidth > table.clientWidth;
    if (scrolls && innerWidth >= 1200) faults.push(`a table is cut off: ${short(table.textContent)}`);
    if (scrolls !== seen(table.previousElementSibling)) faults.push(`the hint to scroll is wrong: ${short(table.textContent)}`);
  }

  // Texts of plots: inside the plot, and no two labels of axes or annotations at one place.
  const apart = (one, other) => {
    const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
    return a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
  };
  const turned = (text) => /rotate\((?!0[,)])/.test(text.getAttribute("transform") ?? "");
  for (const plot of document.querySelectorAll(".canvas")) {
    const frame = plot.getBoundingClientRect();
    for (const text of all(".main-svg text", plot).filter((one) => !one.closest(".hoverlayer"))) {
      const box = text.getBoundingClientRect();
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) {
        faults.push(`${plot.id}: a text is outside of the plot: ${short(text.textContent)}`);
      }
    }
    const ticks = all('g[class$="tick"] > text', plot);
    const axes = Map.groupBy(ticks, (text) => text.parentNode.getAttribute("class"));
    for (const [axis, labels] of axes) {
      const texts = labels.map((label) => label.textContent);
      if (new Set(texts).size < texts.length) faults.push(`${plot.id}: ${axis} has equal labels: ${texts.join(" ")}`);
    }
    // Turned labels are beside each other although their boxes overlap.
    const labels = [...ticks, ...all('text[class$="title"], .annotation-text', plot)];
    labels.forEach((one, at) => {
      for (const other of labels.slice(at + 1)) {
        const same = one.parentNode.getAttribute("class") === other.parentNode.getAttribute("class");
        if (!(same && turned(one)) && !apart(one, other)) {
          faults.push(`${plot.id}: labels overlap: ${short(one.textContent)} and ${short(other.textContent)}`);
        }
      }
    });
  }

  // Texts stand out from their background: the ratio of WCAG 2, level AA.
  const light = (colour) => colour.slice(0, 3).map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
  for (const selector of ["p", "figcaption", "td", "th button", "nav a", ".legend button", ".switches button", '.switches [aria-pressed="true"]', "dd", ".hint"]) {
    const element = all(selector)[0];
    if (!element) continue;
    let back = element;
    while (numbers(getComputedStyle(back).backgroundColor)[3] === 0) back = back.parentElement;
    const [one, other] = [getComputedStyle(element).color, getComputedStyle(back).backgroundColor].map((colour) => light(numbers(colour)));
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < 4.5) faults.push(`${selector} has a contrast of ${contrast.toFixed(1)} only`);
  }
  return faults;
})();
