// Tables that sort by the column whose heading is pressed: once, the other way round, and back to
// the order in which they came.

const collator = new Intl.Collator("en", { numeric: true });

export function makeSortable(table) {
  const body = table.tBodies[0];
  const came = body && groups(body);
  if (!came || came.length < 2) return;
  for (const heading of table.tHead.querySelectorAll("th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const order = next(heading);
      table.tHead.querySelectorAll("[aria-sort]").forEach((it) => it.removeAttribute("aria-sort"));
      if (order) heading.setAttribute("aria-sort", order);
      body.append(...(order ? sorted(came, heading, order) : came).flat());
    });
  }
}

/** Figures are mostly looked at for the largest, names for one of them. `undefined`: as they came. */
function next(heading) {
  const order = ["ascending", "descending"];
  if (isFigures(heading)) order.reverse();
  return order[order.indexOf(heading.getAttribute("aria-sort")) + 1];
}

/** Rows, each with those below it that only say something about it: they have no name. */
function groups(body) {
  const all = [];
  for (const row of body.rows) {
    const more = row.matches(".sentence") && !row.cells[0].textContent.trim();
    if (more && all.length > 0) all.at(-1).push(row);
    else all.push([row]);
  }
  return all;
}

function sorted(groups, heading, order) {
  const sign = order === "ascending" ? 1 : -1;
  const compare = isFigures(heading) ? (a, b) => a - b : collator.compare;
  const keyed = groups.map((group) => ({ group, key: key(group[0], heading) }));
  const [without, having] = [true, false].map((it) =>
    keyed.filter(({ key }) => (key === undefined) === it),
  );
  having.sort((a, b) => sign * compare(a.key, b.key));
  // What was not measured is last, whichever way.
  return [...having, ...without].map(({ group }) => group);
}

function key(row, heading) {
  const cell = row.cells[heading.cellIndex];
  if (isFigures(heading)) {
    return cell?.dataset.sort === undefined ? undefined : Number(cell.dataset.sort);
  }
  return cell?.textContent.trim() || undefined;
}

const isFigures = (heading) => heading.classList.contains("figures");
