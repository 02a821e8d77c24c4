// Measures the page as shown by a browser and writes down the results for the test.
const channels = colour => colour.match(/[\d.]+/g).slice(0, 3).map(Number);
const luminance = colour => channels(colour)
    .map(channel => channel / 255)
    .map(channel => channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4)
    .reduce((sum, channel, at) => sum + channel * [0.2126, 0.7152, 0.0722][at], 0);
const style = element => getComputedStyle(element);
const ground = element => {
    for (let at = element; at; at = at.parentElement) {
        if (!/^rgba\(.*, 0\)$/.test(style(at).backgroundColor)) return style(at).backgroundColor;
    }
    return 'rgb(255, 255, 255)';
};
const contrast = element => {
    const both = [style(element).color, ground(element)].map(luminance).sort((a, b) => b - a);
    return (both[0] + 0.05) / (both[1] + 0.05);
};
const hasText = element => [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
document.querySelectorAll('summary').forEach(summary => summary.click());
const texts = [...document.querySelectorAll('main *')].filter(hasText);
const outside = texts.filter(element => {
    const box = element.getBoundingClientRect();
    return !element.closest('pre') && box.width > 0 && (box.right > innerWidth + 1 || box.left < 0);
});
const seen = {
    dark: luminance(ground(document.body)) < 0.2,
    contrast: Math.min(...texts.map(contrast)),
    faint: texts.filter(element => contrast(element) < 4.5).map(element => element.outerHTML),
    width: innerWidth,
    overflow: document.documentElement.scrollWidth - innerWidth,
    outside: outside.map(element => element.outerHTML),
    opened: document.querySelectorAll('details[open]').length,
    marked: [...document.querySelectorAll('pre.source .it')]
        .every(line => line.offsetWidth >= line.parentElement.scrollWidth - 2 && line.offsetHeight < 40),
    lines: [...document.querySelectorAll('pre.source span')].every(line => line.offsetHeight > 10),
    shown: document.body.innerText,
};
const note = document.createElement('script');
note.id = 'seen';
note.type = 'application/json';
note.textContent = JSON.stringify(seen).replaceAll('<', '\\u003c').replaceAll('&', '\\u0026');
document.body.append(note);
