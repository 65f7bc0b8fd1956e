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

// A table that is wider than the window says so, and can be scrolled with the keyboard.
function markWideTables() {
  for (const frame of document.querySelectorAll(".wide")) {
    const scrolls = frame.scrollWidth > frame.clientWidth;
    frame.classList.toggle("scrolls", scrolls);
    if (scrolls) frame.tabIndex = 0;
    else frame.removeAttribute("tabindex");
  }
}
markWideTables();
addEventListener("resize", markWideTables);
// A table in a folded part has no width until it is opened; the event does not bubble.
document.addEventListener("toggle", markWideTables, true);

addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});
