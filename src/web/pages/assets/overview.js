// Keeps the figures of the overview up to date. Without it they are those of the moment at which the page was opened.

const changed = document.querySelector('[data-changed]');
const needs = document.querySelector('[data-needs]');

/** What is new on the page: another day, another token, or something else that needs a person. */
function showChange() {
  changed.hidden = false;
}

const events = new EventSource('/console/live');
events.addEventListener('message', ({ data }) => {
  const { figures, needs: key } = JSON.parse(data);
  const places = new Map(
    [...document.querySelectorAll('[data-figure]')].map((place) => [place.dataset.figure, place]),
  );
  for (const [name, text] of Object.entries(figures)) {
    const place = places.get(name);
    if (!place) showChange();
    else if (place.textContent !== text) place.textContent = text;
  }
  if (key !== needs.dataset.needs) showChange();
});
// a page that is left must not keep its place
addEventListener('pagehide', () => events.close());
