"use strict";
// before anything is shown: what needs this script may be seen, and the colours are those that were chosen last
document.documentElement.classList.add("script");
try {
  const theme = localStorage.getItem("cascaded-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // a browser that keeps nothing: the system's choice holds
}
