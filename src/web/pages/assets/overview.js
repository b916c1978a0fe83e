// Keeps the figures of the overview up to date. Without it they are those of the moment at which the page was opened.

const changed = document.querySelector('[data-changed]');
const needs = document.querySelector('[data-needs]');

const charts = document.querySelector('[data-charts]');
const chartsEveryMs = 30_000;
let loadedMs = -chartsEveryMs;

/** The gateway draws the charts: those that have changed are taken from the page as it is now. What is unfolded stays so. */
function loadCharts() {
  if (document.hidden || performance.now() - loadedMs < chartsEveryMs) return;
  loadedMs = performance.now();
  const request = new XMLHttpRequest();
  request.responseType = 'document';
  request.addEventListener('load', () => {
    const now = request.response?.querySelector('[data-charts]');
    if (!now) return;
    const details = now.querySelector('details');
    if (details) details.open = charts.querySelector('details')?.open ?? false;
    charts.dataset.charts = now.dataset.charts;
    charts.replaceChildren(...now.childNodes);
  });
  request.open('GET', location.pathname);
  request.send();
}

const events = new EventSource('/console/live');
events.addEventListener('message', ({ data }) => {
  const { figures, charts: drawn, needs: key } = JSON.parse(data);
  if (drawn !== charts.dataset.charts) loadCharts();
  const places = new Map(
    [...document.querySelectorAll('[data-figure]')].map((place) => [place.dataset.figure, place]),
  );
  for (const [name, text] of Object.entries(figures)) {
    const place = places.get(name);
    if (place && place.textContent !== text) place.textContent = text;
  }
  changed.hidden = key === needs.dataset.needs;
});
// a page that is left must not keep its place
addEventListener('pagehide', () => events.close());
