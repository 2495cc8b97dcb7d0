// Asks the server now and then whether runs have landed, and shows the new page where the reader was.
(() => {
  const EVERY = 2000, CALM = 5000; // milliseconds between questions, and at least between two pages
  const place = sessionStorage.getItem("place");
  if (place !== null) {
    sessionStorage.removeItem("place");
    scrollTo(0, Number(place));
  }
  const told = document.createElement("p");
  told.className = "soft";
  told.setAttribute("role", "status");
  told.textContent = "Watching: the page is updated as runs finish.";
  document.querySelector("header").append(told);
  const opened = Date.now();
  let known = null;
  const busy = () => [...document.querySelectorAll("input")].some((input) => input.value);
  const ask = async () => {
    try {
      const now = await (await fetch("version", { cache: "no-store" })).text();
      if (known === null) known = now;
      if (now !== known && Date.now() - opened > CALM && !busy()) {
        sessionStorage.setItem("place", String(scrollY));
        location.reload();
        return;
      }
      told.textContent = now === known ? "Watching: the page is updated as runs finish." : "New runs have landed; the page will renew itself.";
    } catch {
      told.textContent = "The server has stopped; this page shows the last it said.";
    }
    setTimeout(ask, EVERY);
  };
  ask();
})();
