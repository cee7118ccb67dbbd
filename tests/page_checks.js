// What must hold of every page of a report, asked in the page itself: an expression whose value is all checks by name.
(() => {
  const apart = '.unseen, .visually-hidden, .skip, thead, select, script, style';
  const seen = (element) => element.checkVisibility() && !element.closest(apart);
  const texts = () => {
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found = [];
    while (walk.nextNode()) {
      if (walk.currentNode.data.trim() && seen(walk.currentNode.parentElement)) found.push(walk.currentNode);
    }
    return found;
  };

  // What stands out to the side, and text that is cut, except in what scrolls by itself.
  const out = () => {
    const out = [];
    const page = document.scrollingElement;
    if (page.scrollWidth > innerWidth) out.push(`page: ${page.scrollWidth} in ${innerWidth}`);
    const box = (text) => {
      const range = document.createRange();
      range.selectNodeContents(text);
      return range.getBoundingClientRect();
    };
    for (const text of texts()) {
      let { left, right } = box(text);
      for (let at = text.parentElement; at; at = at.parentElement) {
        const style = getComputedStyle(at);
        if (['auto', 'scroll'].includes(style.overflowX)) break;
        const edge = at === document.documentElement ? { left: 0, right: innerWidth } : at.getBoundingClientRect();
        const cuts = at === document.documentElement || style.overflowX === 'hidden' || style.overflowX === 'clip';
        const cut = cuts && (right > edge.right + 1 || left < edge.left - 1);
        if (cut) out.push(`${at.tagName} cuts ${text.data.trim()}`);
      }
    }
    for (const each of document.querySelectorAll('body *:not(.unseen):not(svg):not(svg *)')) {
      if (getComputedStyle(each).overflowX !== 'hidden' || !seen(each)) continue;
      if (each.scrollWidth > each.clientWidth + 1) out.push(`cut: ${each.outerHTML.slice(0, 120)}`);
    }
    return out;
  };

  // Text with less contrast than `least` against what is behind it.
  const faint = (least) => {
    const parts = (color) => color.match(/[\d.]+/g).map(Number);
    const light = (color) => {
      const [r, g, b] = parts(color).map((part) => part / 255);
      const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
      return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    };
    const behind = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const color = getComputedStyle(at).backgroundColor;
        if ((parts(color)[3] ?? 1) === 1) return color;
      }
      return 'rgb(255, 255, 255)';
    };
    const faint = new Set();
    for (const { parentElement } of texts()) {
      if (parentElement.closest('svg')) continue;
      const both = [light(getComputedStyle(parentElement).color), light(behind(parentElement))];
      const contrast = (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
      if (contrast < least) faint.add(`${parentElement.outerHTML.slice(0, 80)}: ${contrast.toFixed(2)}`);
    }
    return [...faint];
  };

  // From now on `toReach` has what Tab has not come to, `unseen` what showed no focus.
  const watchFocus = () => {
    const usable = 'a[href], button, select, input, summary, [tabindex="0"]';
    const pressed = (each) => each.checkVisibility() && getComputedStyle(each).pointerEvents !== 'none';
    const all = [...document.querySelectorAll(usable)].filter((each) => each.tabIndex >= 0 && pressed(each));
    window.toReach = new Set(all);
    window.unseen = [];
    document.activeElement?.blur();
    document.addEventListener('focusin', ({ target }) => {
      toReach.delete(target);
      const { outlineStyle, outlineWidth } = getComputedStyle(target);
      if (outlineStyle === 'none' || parseFloat(outlineWidth) < 2) unseen.push(target.outerHTML.slice(0, 120));
    });
  };

  return { out, faint, watchFocus };
})()
