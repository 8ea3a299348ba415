"use strict";
(() => {
  const form = document.querySelector("form.find");
  if (!form) return;
  const told = form.querySelector("[role=status]");
  const all = [...document.querySelectorAll(".f")];
  const groups = [...document.querySelectorAll(".pass")];
  const value = (name) => (form.elements[name] ? form.elements[name].value : "");
  const heads = new Map(all.map((each) => [each, each.closest(".pass")?.querySelector("h3").textContent ?? ""]));
  const tables = [...document.querySelectorAll(".pass .tall")];
  let before = null;
  const apply = () => {
    const words = value("words").trim().toLowerCase();
    const kind = value("kind"), verdict = value("verdict");
    const wanted = words || kind || verdict;
    let shown = 0;
    for (const each of all) {
      const ok = (!kind || each.dataset.kind === kind) && (!verdict || each.dataset.verdict === verdict) &&
        (!words || `${each.textContent} ${heads.get(each)}`.toLowerCase().includes(words));
      each.hidden = !ok;
      shown += ok;
    }
    if (wanted && !before) before = groups.map((group) => group.open);
    groups.forEach((group, at) => {
      const some = group.querySelector(".f:not([hidden])");
      group.hidden = Boolean(wanted && !some);
      if (wanted) group.open = Boolean(some);
      else if (before) group.open = before[at];
    });
    for (const table of tables) {
      const none = Boolean(wanted && !table.querySelector(".f:not([hidden])"));
      table.hidden = table.previousElementSibling.hidden = none;
    }
    if (!wanted) before = null;
    told.textContent = wanted ? `${shown} of ${all.length} found` : "";
  };
  let timer = 0;
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(apply, 120); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
})();
