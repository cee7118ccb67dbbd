"use strict";
(() => {
  const root = document.documentElement;

  // colours: as the system has them, light, dark
  const themes = ["auto", "light", "dark"];
  const button = document.getElementById("page-theme");
  const theme = () => root.dataset.theme ?? "auto";
  const say = () => {
    button.textContent = `Colours: ${theme()}`;
  };
  button.addEventListener("click", () => {
    const next = themes[(themes.indexOf(theme()) + 1) % themes.length];
    if (next === "auto") delete root.dataset.theme;
    else root.dataset.theme = next;
    try {
      localStorage.setItem("cascaded-theme", next);
    } catch {
      // not remembered, and used all the same
    }
    say();
  });
  say();

  // contents: folded where they stand above the text, open where they stand beside it
  const contents = document.querySelector(".contents details");
  const beside = matchMedia("(min-width: 1100px)");
  const fold = () => {
    contents.open = beside.matches;
  };
  beside.addEventListener("change", fold);
  fold();
  contents.addEventListener("click", (event) => {
    if (event.target.closest("a") && !beside.matches) contents.open = false;
  });

  // where the reader is
  const links = new Map([...contents.querySelectorAll("a")].map((link) => [link.hash.slice(1), link]));
  const seen = new Set();
  const watch = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) seen.add(target.id);
        else seen.delete(target.id);
      }
      const first = [...links.keys()].find((id) => seen.has(id));
      for (const [id, link] of links) {
        if (id === first) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    },
    { rootMargin: "-20% 0px -60% 0px" },
  );
  for (const id of links.keys()) watch.observe(document.getElementById(id));

  // commands that can be taken along
  document.addEventListener("click", async (event) => {
    const copy = event.target.closest(".copy");
    if (!copy) return;
    const code = copy.previousElementSibling;
    try {
      await navigator.clipboard.writeText(code.textContent);
      copy.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code); // the reader's own key does the rest
      copy.textContent = "Selected";
    }
    setTimeout(() => {
      copy.textContent = "Copy";
    }, 1500);
  });
})();
