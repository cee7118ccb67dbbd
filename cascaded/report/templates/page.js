"use strict";
(() => {
  const root = document.documentElement;

  // colors: as the system has them, light, dark
  const themes = ["auto", "light", "dark"];
  const button = document.getElementById("page-theme");
  const theme = () => root.dataset.theme ?? "auto";
  const label = () => {
    button.textContent = `Colors: ${theme()}`;
  };
  button.addEventListener("click", () => {
    const next = themes[(themes.indexOf(theme()) + 1) % themes.length];
    if (next === "auto") delete root.dataset.theme;
    else root.dataset.theme = next;
    try {
      localStorage.setItem("cascaded-theme", next);
    } catch {
      // not stored; used all the same
    }
    label();
  });
  label();

  // commands can be copied
  document.addEventListener("click", async (event) => {
    const copy = event.target.closest(".copy");
    if (!copy) return;
    const code = copy.previousElementSibling;
    try {
      await navigator.clipboard.writeText(code.textContent);
      copy.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code); // copy with the keyboard instead
      copy.textContent = "Selected";
    }
    setTimeout(() => {
      copy.textContent = "Copy";
    }, 1500);
  });
})();
