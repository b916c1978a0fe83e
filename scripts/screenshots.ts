/**
 * `npm run screenshots [-- --out DIR] [--pages TEXT]` takes pictures of every page of customers and operators, in light and dark, on a
 * desktop and a phone, by the tests that open them all, and makes contact sheets of them: index.html and PNG files of eight pages each. A page
 * with folded parts has pictures with these open as well, NAME-unfolded.
 * With `--pages`, only of the pages whose name contains the text, by the tests whose source has it.
 */
import { spawnSync } from 'node:child_process';
import { globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import chromium from '@sparticuz/chromium';
import { chromium as playwright } from 'playwright-core';
import { processEnvironment } from '../src/base/config/environment.ts';

const root = path.resolve(import.meta.dirname, '..');
const { values } = parseArgs({
  options: {
    out: { type: 'string', default: '.tollbook/screenshots' },
    pages: { type: 'string', default: '' },
  },
});
const out = path.resolve(values.out);
const looks = ['desktop-light', 'desktop-dark', 'phone-light', 'phone-dark'];
const pagesOnSheet = 8;

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const tests = globSync('test/**/*.test.ts', { cwd: root }).filter((file) => {
  const source = readFileSync(path.join(root, file), 'utf8');
  return source.includes('startTour(') && source.includes(values.pages);
});
const { status } = spawnSync(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', 'run', '--project', 'tests', '--maxWorkers', '2', ...tests],
  {
    cwd: root,
    stdio: 'inherit',
    env: { ...processEnvironment(), SCREENSHOTS: out, SCREENSHOTS_OF: values.pages },
  },
);
await writeSheets(pagesIn(out));
process.exitCode = status ?? 1;

/** The pages whose pictures are there, without the ending that says how they look. */
function pagesIn(dir: string): string[] {
  const ending = `-${looks[0]}.png`;
  return readdirSync(dir)
    .filter((file) => file.endsWith(ending))
    .map((file) => file.slice(0, -ending.length))
    .toSorted();
}

async function writeSheets(pages: readonly string[]): Promise<void> {
  const index = path.join(out, 'index.html');
  writeFileSync(index, sheet(pages));
  const browser = await playwright.launch({
    executablePath: await chromium.executablePath(),
    args: ['--no-sandbox'],
  });
  try {
    const page = await browser.newPage({ viewport: { width: 1_640, height: 900 } });
    for (let first = 0; first < pages.length; first += pagesOnSheet) {
      const part = path.join(out, 'part.html');
      writeFileSync(part, sheet(pages.slice(first, first + pagesOnSheet)));
      await page.goto(pathToFileURL(part).href);
      const file = `sheet-${String(first / pagesOnSheet + 1).padStart(2, '0')}.png`;
      await page.screenshot({ path: path.join(out, file), fullPage: true });
      rmSync(part);
    }
  } finally {
    await browser.close();
  }
  process.stdout.write(`${pages.length} pages: ${index}\n`);
}

function sheet(pages: readonly string[]): string {
  const rows = pages.map(
    (page) => `<h2>${page}</h2><p>${looks.map((look) => picture(page, look)).join('')}</p>`,
  );
  return `<!doctype html><meta charset="utf-8"><title>Every page</title><style>
body { font: 14px system-ui, sans-serif; margin: 16px; background: #888 }
h2 { font-size: 14px; margin: 8px 0 4px } p { display: flex; gap: 8px; margin: 0 0 12px }
img { display: block; height: 420px; object-fit: cover; object-position: top }
.desktop { width: 590px; height: 400px } .phone { width: 194px }
</style>${rows.join('\n')}`;
}

function picture(page: string, look: string): string {
  const file = `${page}-${look}.png`;
  return `<a href="${file}"><img class="${look.split('-', 1)[0]}" src="${file}" alt="${page}, ${look}"></a>`;
}
