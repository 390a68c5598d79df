// Keeps a page true without a reload, and makes one Tab stop of each grid of nodes. Without this script the first page
// reloads itself every 15 s, and everything can be read and reached.
"use strict";
(() => {
  const main = document.getElementById("main");
  const live = document.getElementById("live");
  const limits = [[120, 1, "s"], [7200, 60, "min"], [172800, 3600, "h"], [Infinity, 86400, "d"]];
  const marked = new Map(); // id of a grid -> index of the cell that the keys are at
  let shown = [...main.children].map((one) => one.outerHTML);
  let busy = false;
  let again = false;
  let news = null;

  function ages() {
    const now = Date.now() / 1000;
    for (const time of main.querySelectorAll("time")) {
      const seconds = Math.max(now - Date.parse(time.dateTime) / 1000, 0);
      const [, size, unit] = limits.find(([limit]) => seconds < limit);
      time.textContent = Math.round(seconds / size) + " " + unit;
    }
  }

  // Only parts that the head made otherwise than before are put in place of the old ones.
  function put(html) {
    const fresh = document.createElement("template");
    fresh.innerHTML = html;
    const parts = [...fresh.content.children];
    const made = parts.map((one) => one.outerHTML);
    const old = [...main.children];
    const focused = main.contains(document.activeElement) ? document.activeElement : null;
    const [id, href] = focused ? [focused.id, focused.getAttribute("href")] : ["", null];
    const open = [...main.querySelectorAll("details[open]")].map((one) => one.id);
    if (old.length === parts.length) {
      parts.forEach((one, at) => { if (made[at] !== shown[at]) old[at].replaceWith(one); });
    } else {
      main.replaceChildren(...parts);
    }
    shown = made;
    grids();
    for (const one of open) {
      const found = document.getElementById(one);
      if (found) found.open = true;
    }
    if (focused && !main.contains(focused)) {
      const found = (id && document.getElementById(id)) || (href && main.querySelector('a[href="' + CSS.escape(href) + '"]'));
      if (found) found.focus({ preventScroll: true });
    }
    ages();
  }

  async function refresh() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      const answer = await fetch(location.href, { cache: "no-store", headers: { "Steward-Part": "main" } });
      if (answer.ok) put(await answer.text());
      else live.textContent = "Not shown anew: " + (await answer.text());
    } catch (error) {
      live.textContent = "The head does not answer: what is shown is old. Waiting for it.";
    }
    busy = false;
    if (again) {
      again = false;
      refresh();
    }
  }

  // A hidden page asks for nothing: browsers keep few connections to one place.
  function watch() {
    if (document.hidden || news) return;
    const mine = news = new EventSource("/page/news");
    news.onopen = () => { live.textContent = "Live. These pages show; they change nothing."; };
    news.onmessage = refresh;
    news.onerror = () => {
      live.textContent = "Not live: what is shown may be old. Trying again.";
      if (mine.readyState === EventSource.CLOSED && mine === news) {
        news = null;
        setTimeout(() => { refresh(); watch(); }, 15000);
      }
    };
  }

  function unwatch() {
    if (news) news.close();
    news = null;
  }

  // The names of a list such as n[1-3,7],login: as fold() of the head writes it.
  function expand(list) {
    const names = [];
    for (const [, prefix, ranges] of list.matchAll(/([^,[\]]+)(?:\[([0-9,-]+)\])?/g)) {
      if (!ranges) names.push(prefix);
      else for (const range of ranges.split(",")) {
        const [first, last = first] = range.split("-");
        for (let n = Number(first); n <= Number(last); n++) names.push(prefix + String(n).padStart(first.length, "0"));
      }
    }
    return names;
  }

  function nameOf(cells, at) {
    if (!cells.names) cells.names = expand(cells.dataset.nodes);
    return cells.names[at];
  }

  function told(cells, at) {
    const name = nameOf(cells, at);
    const cell = cells.children[at];
    const word = cell.className.replace(/\b(cell|now)\b/g, "").trim();
    return name ? name + ": " + (word === "" ? "fine, idle" : word === "busy" ? "fine, busy" : word.replaceAll("-", " ")) : "";
  }

  function mark(cells, at) {
    cells.querySelector(".now")?.classList.remove("now");
    marked.set(cells.id, at);
    const line = document.getElementById("at");
    if (line) line.textContent = told(cells, at);
    cells.children[at].classList.add("now");
    cells.children[at].scrollIntoView({ block: "nearest" });
  }

  function leave(cells, at) {
    const link = cells.children[at].getAttribute("href");
    const name = nameOf(cells, at);
    if (link || name) location.href = link || "/node/" + encodeURIComponent(name);
  }

  function grids() {
    for (const cells of main.querySelectorAll(".cells")) {
      cells.tabIndex = 0;
      cells.setAttribute("role", "application");
      cells.setAttribute("aria-label", "Nodes of " + cells.dataset.title + ": arrow keys move, Enter opens");
      for (const link of cells.querySelectorAll("a")) link.tabIndex = -1;
    }
  }

  // In a row of cells of different widths the nearest one above or below is meant.
  function beside(cells, at, down) {
    const all = cells.children;
    const here = all[at].getBoundingClientRect();
    const middle = here.left + here.width / 2;
    let best = at;
    let far = Infinity;
    let row = null;
    for (let next = at + down; all[next]; next += down) {
      const box = all[next].getBoundingClientRect();
      const centre = box.top + box.height / 2;
      if (centre > here.top && centre < here.bottom) continue;
      row ??= centre;
      if (Math.abs(centre - row) > here.height) break;
      const off = Math.abs(box.left + box.width / 2 - middle);
      if (off < far) [best, far] = [next, off];
    }
    return best;
  }

  main.addEventListener("keydown", (event) => {
    const cells = event.target.closest?.(".cells");
    if (!cells || !cells.children.length || event.ctrlKey || event.altKey || event.metaKey) return;
    const at = Math.min(marked.get(cells.id) ?? 0, cells.children.length - 1);
    const end = cells.children.length - 1;
    const moves = {
      ArrowRight: () => Math.min(at + 1, end),
      ArrowLeft: () => Math.max(at - 1, 0),
      ArrowDown: () => beside(cells, at, 1),
      ArrowUp: () => beside(cells, at, -1),
      Home: () => 0,
      End: () => end,
    };
    if (event.key in moves) mark(cells, moves[event.key]());
    else if (event.key === "Enter") leave(cells, at);
    else return;
    event.preventDefault();
  });
  main.addEventListener("focusin", (event) => {
    if (event.target.matches(".cells") && event.target.children.length) mark(event.target, Math.min(marked.get(event.target.id) ?? 0, event.target.children.length - 1));
  });
  main.addEventListener("mouseover", (event) => {
    const cell = event.target.closest?.(".cells > *");
    if (!cell) return;
    const at = [...cell.parentElement.children].indexOf(cell);
    cell.title = told(cell.parentElement, at);
  });
  main.addEventListener("click", (event) => {
    const cell = event.target.closest?.(".cells > i");
    if (cell) leave(cell.parentElement, [...cell.parentElement.children].indexOf(cell));
  });

  // A filter asks only for what was filled in: its address is one to keep.
  document.addEventListener("submit", (event) => {
    for (const one of event.target.elements) if (one.name && !one.value) one.disabled = true;
  });
  window.addEventListener("pageshow", () => {
    for (const one of document.querySelectorAll("input:disabled, select:disabled")) one.disabled = false;
  });

  setInterval(ages, 1000);
  grids();
  if ("live" in document.body.dataset) {
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) return unwatch();
      refresh();
      watch();
    });
    watch();
  }
})();
