// Keeps the page true without a reload. Without this script the browser reloads it every 15 s.
"use strict";
(() => {
  const main = document.getElementById("main");
  const live = document.getElementById("live");
  const limits = [[120, 1, "s"], [7200, 60, "min"], [172800, 3600, "h"], [Infinity, 86400, "d"]];
  let busy = false;
  let again = false;

  function ages() {
    const now = Date.now() / 1000;
    for (const time of main.querySelectorAll("time")) {
      const seconds = Math.max(now - Date.parse(time.dateTime) / 1000, 0);
      const [, size, unit] = limits.find(([limit]) => seconds < limit);
      time.textContent = Math.round(seconds / size) + " " + unit;
    }
  }

  function put(html) {
    const focused = document.activeElement && main.contains(document.activeElement) ? document.activeElement.id : "";
    const open = [...main.querySelectorAll("details[open]")].map((one) => one.id);
    main.innerHTML = html;
    for (const id of open) {
      const one = document.getElementById(id);
      if (one) one.open = true;
    }
    const one = focused && document.getElementById(focused);
    if (one) one.focus({ preventScroll: true });
    ages();
  }

  async function refresh() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      const answer = await fetch("/page/main", { cache: "no-store" });
      if (answer.ok) put(await answer.text());
    } catch (error) {
      live.textContent = "The head does not answer: what is shown is old. Waiting for it.";
    }
    busy = false;
    if (again) {
      again = false;
      refresh();
    }
  }

  function watch() {
    const news = new EventSource("/page/news");
    news.onopen = () => { live.textContent = "Live. This page shows; it changes nothing."; };
    news.onmessage = refresh;
    news.onerror = () => {
      live.textContent = "Not live: what is shown may be old. Trying again.";
      if (news.readyState === EventSource.CLOSED) setTimeout(() => { refresh(); watch(); }, 15000);
    };
  }

  function move(event) {
    const cells = [...document.querySelectorAll(".cell")];
    const at = cells.indexOf(document.activeElement);
    if (at < 0) return;
    const row = cells.filter((cell) => cell.offsetTop === cells[0].offsetTop).length;
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: row, ArrowUp: -row }[event.key];
    if (by && cells[at + by]) {
      event.preventDefault();
      cells[at + by].focus();
    }
  }

  document.addEventListener("keydown", move);
  setInterval(ages, 1000);
  watch();
})();
