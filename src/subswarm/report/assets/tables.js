// Tables that can be sorted by their headings and filtered by text; without this script they are plain tables.
(() => {
  const value = (row, place) => {
    const cell = row.cells[place];
    const number = cell.dataset.value;
    return number === undefined ? cell.textContent.trim().toLowerCase() : number === "" ? null : Number(number);
  };
  const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true }));

  function sort(table, place) {
    const headings = [...table.tHead.rows[0].cells];
    const heading = headings[place];
    const numeric = heading.classList.contains("number") || heading.classList.contains("share");
    const now = heading.getAttribute("aria-sort");
    const up = now ? now === "descending" : !numeric; // numbers start with the largest
    headings.forEach((each) => each.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows];
    rows.sort((one, other) => {
      const a = value(one, place), b = value(other, place);
      if (a === null || b === null) return (a === null) - (b === null); // missing values come last
      return up ? compare(a, b) : compare(b, a);
    });
    table.tBodies[0].append(...rows);
  }

  function filter(table, text, told) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...table.tBodies[0].rows];
    let shown = 0;
    for (const row of rows) {
      const content = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => content.includes(word));
      shown += !row.hidden;
    }
    told.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((heading, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(table, place));
      heading.append(button);
    });
    const tools = document.querySelector(`[data-tools-of="${table.id}"]`);
    if (!tools) continue;
    tools.hidden = false;
    const told = tools.querySelector("output");
    tools.querySelector("input").addEventListener("input", (event) => filter(table, event.target.value, told));
  }
  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.of).textContent);
      button.textContent = "copied";
    });
  }
})();
