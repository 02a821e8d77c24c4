// A click on a function zooms to it; a search marks functions.
'use strict';
const WIDTH = 1180, MARGIN = 10, CHARACTER = 6.6;
const frames = [...document.querySelectorAll('g.f')].map(g => ({
  g, x: +g.dataset.x, w: +g.dataset.w, name: g.dataset.n, rect: g.querySelector('rect'), text: g.querySelector('text'),
}));
const detail = document.getElementById('detail');
function show(from) {
  const scale = WIDTH / from.w;
  const depth = +from.rect.getAttribute('y');
  for (const f of frames) {
    const outer = f.x <= from.x && f.x + f.w >= from.x + from.w && +f.rect.getAttribute('y') <= depth;
    const left = Math.max(f.x, from.x), right = Math.min(f.x + f.w, from.x + from.w);
    const width = (right - left) * scale;
    f.g.style.display = outer || width > 0.1 && f.x >= from.x && f.x + f.w <= from.x + from.w ? '' : 'none';
    f.g.style.opacity = outer && f !== from ? 0.6 : 1;
    const x = MARGIN + (left - from.x) * scale, room = Math.floor((width - 6) / CHARACTER);
    f.rect.setAttribute('x', x);
    f.rect.setAttribute('width', Math.max(width, 0));
    f.text.setAttribute('x', x + 3);
    f.text.textContent = f.name.length <= room ? f.name : room < 3 ? '' : f.name.slice(0, room - 1) + '…';
  }
}
function search() {
  const wanted = prompt('Mark functions whose names contain:', '');
  if (wanted === null) return;
  let samples = 0, end = -1;
  for (const f of frames) {
    const found = wanted !== '' && f.name.toLowerCase().includes(wanted.toLowerCase());
    f.g.classList.toggle('found', found);
    // Functions inside a counted one are part of its count.
    if (found && f.x >= end) { samples += f.w; end = f.x + f.w; }
  }
  detail.textContent = wanted === '' ? ' ' : `${wanted}: ${(samples * 100 / frames[0].w).toFixed(1)} %`;
}
frames.forEach(f => {
  f.g.addEventListener('click', () => show(f));
  f.g.addEventListener('mouseover', () => { detail.textContent = f.g.querySelector('title').textContent; });
});
document.getElementById('all').addEventListener('click', () => show(frames[0]));
document.getElementById('search').addEventListener('click', search);
