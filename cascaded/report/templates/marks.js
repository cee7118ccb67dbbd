"use strict";
// Helpers that the explorer draws with.
const make = (kind, className, text = "") => {
  const made = document.createElement(kind);
  made.className = className;
  made.textContent = text;
  return made;
};
const drawn = (kind, attributes) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
};
const percent = (share) => `${Math.round(100 * share)} %`;
const short = (name, most) => {
  const letters = [...name];
  if (letters.length <= most) return name;
  const tail = Math.floor(most / 3);
  return `${letters.slice(0, most - tail - 1).join("")}…${letters.slice(letters.length - tail).join("")}`;
};

// 256 shades from nearly black through the network's color to nearly white
function shades(color) {
  const middle = [1, 3, 5].map((place) => parseInt(color.slice(place, place + 2), 16));
  const mix = (a, b, share) => a + (b - a) * share;
  return Array.from({ length: 256 }, (_, shade) =>
    middle.map((value) => (shade < 128 ? mix(16, value, shade / 128) : mix(value, 250, (shade - 128) / 127))),
  );
}
