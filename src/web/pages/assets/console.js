// The keys of the console. Without JavaScript everything works with a mouse and Tab.

const dialog = document.querySelector('[data-keys-dialog]');
const opener = document.querySelector('[data-keys]');
if (dialog && opener) {
  opener.hidden = false;
  opener.addEventListener('click', () => dialog.showModal());
}

/** The rows that can be walked through: those of the tables that are marked. */
const rows = () => [...document.querySelectorAll('[data-rows] tbody tr')];

function walk(by) {
  const all = rows();
  if (all.length === 0) return;
  const at = all.findIndex((row) => row.contains(document.activeElement));
  const row = all[Math.min(Math.max(at + by, 0), all.length - 1)];
  const target = row.querySelector('a, button, select') ?? row;
  if (target === row) row.tabIndex = -1;
  target.focus();
  row.scrollIntoView({ block: 'nearest' });
}

function search() {
  const box = document.querySelector('input[data-search]');
  if (box) {
    box.focus();
    box.select();
    return;
  }
  const link = document.querySelector('nav a[href="/console/payments"]');
  if (link) location.assign(`${link.href}#search`);
}

const actions = { j: () => walk(1), k: () => walk(-1), '/': search, '?': () => dialog?.showModal() };

addEventListener('keydown', (event) => {
  const isTyping = event.target instanceof Element && event.target.closest('input, textarea, select');
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || dialog?.open) return;
  const act = actions[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

if (location.hash === '#search') document.querySelector('input[data-search]')?.focus();

/** On a phone the navigation is one row, which fades at each side where more of it is hidden. */
function showHidden(row) {
  row.toggleAttribute('data-hidden-before', row.scrollLeft > 1);
  row.toggleAttribute('data-hidden-after', row.scrollLeft + row.clientWidth < row.scrollWidth - 1);
}

/** The part that is open is in the middle of the row. */
function showOpenPart() {
  for (const row of document.querySelectorAll('nav ul')) {
    const link = row.querySelector('[aria-current="page"]');
    if (link) row.scrollLeft = link.offsetLeft - row.offsetLeft - (row.clientWidth - link.offsetWidth) / 2;
    showHidden(row);
  }
}
showOpenPart();
addEventListener('resize', showOpenPart);
for (const row of document.querySelectorAll('nav ul')) row.addEventListener('scroll', () => showHidden(row));

/** An action that cannot be undone takes two presses: the first shows the effect of the second on the button. */
for (const button of document.querySelectorAll('button[data-confirm]')) {
  const parts = [...button.childNodes];
  let isArmed = false;
  button.addEventListener('click', (event) => {
    if (isArmed) return;
    event.preventDefault();
    isArmed = true;
    button.replaceChildren(button.dataset.confirm);
    setTimeout(() => {
      isArmed = false;
      button.replaceChildren(...parts);
    }, 5_000);
  });
}
