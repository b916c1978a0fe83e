import { describe, expect, test } from 'vitest';
import { grantCredit } from '../../../src/accounts/use-cases/credit/credit.ts';
import { findAccountId } from '../../../src/accounts/store/credit.ts';
import { accountNameOf } from '../../../src/accounts/store/identity.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { freeModel, paidModel } from '../../support/chat-gateway.ts';
import { laneOn } from '../../support/credit.ts';
import { type Browser, type IdentityGateway, signInByWallet } from '../../support/identity.ts';
import { formsIn, openTab, postForm, sendForm, startSite, type Tab } from '../../support/site.ts';
import { eventually } from '../../support/wait.ts';

const chromium = useBrowser();
const sessionCookie = 'tollbook.session_token';

/** A user with this much credit. */
async function signInWith(gateway: IdentityGateway, browser: Browser, micros: bigint): Promise<void> {
  await signInByWallet(browser);
  const userId = (await browser.get('/api/auth/get-session')).json.user.id as string;
  const accountId = (await findAccountId(gateway.database.pool, accountNameOf(userId))) ?? 0;
  if (micros > 0n)
    await grantCredit({ ...gateway.database, lane: laneOn(gateway.database) }, accountId, micros);
}

async function openAs(gateway: IdentityGateway, browser: Browser): Promise<Tab> {
  const tab = await openTab(chromium, gateway);
  await tab.context.addCookies([
    { name: sessionCookie, value: browser.cookies.get(sessionCookie) ?? '', url: gateway.url },
  ]);
  await tab.open('/try');
  return tab;
}

async function say({ page }: Tab, text: string, model?: string): Promise<void> {
  if (model !== undefined) await page.getByLabel('Model', { exact: true }).selectOption(model);
  await page.getByLabel('Your message').fill(text);
  await page.getByRole('button', { name: 'Send' }).click();
}

async function countOf({ database }: IdentityGateway, type: string): Promise<number> {
  const { rows } = await database.pool.query<{ n: number }>(
    'select count(*)::int as n from tollbook.event where type = $1',
    [type],
  );
  return rows[0]?.n ?? 0;
}

describe.skipIf(!hasBrowser)('a person with a browser', () => {
  test('talks with a model, sees about what it costs while it writes and exactly what it cost at its end', async () => {
    const gateway = await startSite({ model: { pieceMs: 10 } });
    const person = gateway.browser();
    await signInWith(gateway, person, 5_000_000n);
    const tab = await openAs(gateway, person);
    const { page } = tab;
    await page.getByText('System prompt').click();
    await page.getByLabel('Instructions for the model').fill('Be short.');
    await say(tab, 'words:120', paidModel);
    await page.getByText(/About 0\.00\d* USD so far, of at most 0\.\d+ USD held/).waitFor();
    await page.getByText(/Cost 0\.00\d+ USD, of 0\.\d+ USD held · \d+ tokens in, 120 out/).waitFor();
    const href = await page.getByRole('link', { name: 'Details' }).getAttribute('href');
    const id = new URL(href ?? '', gateway.url).searchParams.get('id') ?? '';
    const { json } = await person.get(`/v1/generation?id=${id}`);
    expect(json).toMatchObject({ status: 'completed', streamed: true, completion_tokens: 120 });
    expect(await page.locator('[data-facts] data').first().getAttribute('value')).toBe(json.cost);
    const { json: credits } = await person.get('/v1/credits');
    expect(await page.locator('[data-balance] data').getAttribute('value')).toBe(credits.balance);

    await page.getByLabel('Your message').fill('And now?');
    await page.keyboard.press('Control+Enter');
    await page.locator('.turn:nth-child(2) a').waitFor();
    const { messages } = JSON.parse(gateway.model.calls.at(-1)?.body ?? '');
    expect(messages.map(({ role }: { role: string }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'user',
    ]);
    expect(messages[2].content).toMatch(/^word1 word2 .* word120$/);
    await page.getByText(/This conversation cost 0\.00\d+ USD so far/).waitFor();
    await tab.check();
    await page.getByRole('button', { name: 'New conversation' }).click();
    expect(await page.locator('.turn').count()).toBe(0);
  });

  test('stops an answer, and pays for the prompt and for what was written until then', async () => {
    const gateway = await startSite({ model: { pieceMs: 20 } });
    const person = gateway.browser();
    await signInWith(gateway, person, 5_000_000n);
    const tab = await openAs(gateway, person);
    const { page } = tab;
    await say(tab, 'words:5000', paidModel);
    await page.getByText('word7 word8').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('You pay for the prompt and for what was written until then.').waitFor();
    const link = page.getByRole('link', { name: 'Details' });
    await link.waitFor();
    const id = new URL((await link.getAttribute('href')) ?? '', gateway.url).searchParams.get('id') ?? '';
    const record = await eventually(async () => {
      const { json } = await person.get(`/v1/generation?id=${id}`);
      if (json.status === 'running') throw new Error('it is not settled yet');
      return json;
    });
    expect(record.status).toBe('client_left');
    expect(record.completion_tokens).toBeLessThan(5_000);
    const shown = await page.locator('[data-facts] data').first().getAttribute('value');
    expect(shown).toBe(record.cost);
    await tab.check();
  });

  test('sees what a model writes only as text, whatever it writes', async () => {
    const gateway = await startSite();
    const tab = await openTab(chromium, gateway);
    await tab.open('/try');
    const evil = '<img src=x onerror=alert(1)><b>bold</b> [x](javascript:alert(1)) \u202eevil\u2066';
    await say(tab, evil, freeModel);
    const answer = tab.page.locator('[data-answer]').first();
    await eventually(async () => expect(await answer.textContent()).toBe(evil));
    expect(await answer.locator('*').count()).toBe(0);
    expect(
      await tab.page.evaluate('getComputedStyle(document.querySelector("[data-answer]")).unicodeBidi'),
    ).toBe('isolate');
    await tab.page.getByText('Free of charge. 4 more today.').waitFor();
    await tab.check();
  });

  test.each([
    {
      name: 'too little credit',
      micros: 0n,
      model: paidModel,
      text: 'x',
      advice: 'Add credit, choose a cheaper',
    },
    {
      name: 'a model that is unreachable',
      micros: 5_000_000n,
      model: paidModel,
      text: 'fault:status_500',
      advice: 'Nothing was charged. Send it again in a moment, or choose another model.',
    },
    {
      name: 'an answer that is cut off',
      micros: 5_000_000n,
      model: paidModel,
      text: 'fault:cut_after_first_token and more',
      advice: 'The model’s server did not end its answer.',
    },
    {
      name: 'a minute that is used up',
      micros: 5_000_000n,
      model: paidModel,
      text: 'x',
      advice: 'Then send it again.',
      options: { constants: { chat: { sessionPerMinute: 1 } } },
      before: 1,
    },
    {
      name: 'a day that is used up',
      micros: undefined,
      model: freeModel,
      text: 'x',
      advice: 'The next day begins at midnight UTC.',
      options: { chat: 'anonymous_per_day = 1' },
      before: 1,
    },
  ])('shows what to do next after $name, and no typed text is lost', async (given) => {
    const { micros, model, text, advice, options = {}, before = 0 } = given;
    const gateway = await startSite(options);
    const person = gateway.browser();
    if (micros !== undefined) await signInWith(gateway, person, micros);
    const tab = await openAs(gateway, person);
    const { page } = tab;
    for (let at = 0; at < before; at++) {
      await say(tab, 'Hello', model);
      await page
        .locator('[data-facts]')
        .filter({ hasText: /Cost|Free/ })
        .waitFor();
    }
    await say(tab, text, model);
    await page.locator('.turn:last-child .notice').filter({ hasText: advice }).waitFor();
    const isCut = text.includes('cut');
    if (isCut)
      await page
        .locator('.turn:last-child [data-facts]')
        .filter({ hasText: /^Cost 0\.00/ })
        .waitFor();
    const typed = page.getByLabel('Your message');
    await eventually(async () => expect(await typed.inputValue()).toBe(isCut ? '' : text));
    await page.getByRole('button', { name: 'Send' }).waitFor();
    await tab.check();
  });

  test('whose session ends in the middle of a conversation loses nothing: a sign-in elsewhere is enough', async () => {
    const gateway = await startSite();
    const person = gateway.browser();
    await signInWith(gateway, person, 5_000_000n);
    const tab = await openAs(gateway, person);
    const { page, context } = tab;
    await say(tab, 'Hello', paidModel);
    await page.getByText(/Cost 0\.00/).waitFor();
    await person.post('/api/auth/sign-out');
    for (const end of ['ended', 'without its cookie']) {
      if (end !== 'ended') await context.clearCookies();
      await say(tab, `again, ${end}`, paidModel);
      await page.locator('.turn:last-child').getByText('Your session has ended.').waitFor();
      expect(await page.getByLabel('Your message').inputValue()).toBe(`again, ${end}`);
    }
    const again = gateway.browser();
    await signInWith(gateway, again, 5_000_000n);
    await context.addCookies([
      { name: sessionCookie, value: again.cookies.get(sessionCookie) ?? '', url: gateway.url },
    ]);
    await page.getByRole('button', { name: 'Send' }).click();
    await page
      .locator('.turn:last-child')
      .getByText(/Cost 0\.00/)
      .waitFor();
    const { messages } = JSON.parse(gateway.model.calls.at(-1)?.body ?? '');
    expect(messages.map(({ content }: { content: string }) => content)).toEqual([
      'Hello',
      'Hello',
      'again, without its cookie',
    ]);
    expect(await countOf(gateway, 'chat_completed')).toBe(2);
  });
});

describe('without JavaScript', () => {
  test('a message is answered with what it cost, once, however often its form is sent', async () => {
    const gateway = await startSite();
    const browser = gateway.browser();
    await signInWith(gateway, browser, 5_000_000n);
    const [form] = formsIn((await browser.get('/try')).text).filter(({ action }) => action === '/try');
    const typed = { ...form?.fields, model: paidModel, system: 'Be <short>.', prompt: 'Hello <b>there</b>' };
    const answers = await Promise.all([1, 2, 3].map(() => postForm(browser, '/try', typed)));
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
      200, 409, 409,
    ]);
    const shown = answers.find(({ status }) => status === 200)?.text ?? '';
    expect(shown).toContain('Hello &#60;b&#62;there&#60;/b&#62;</bdi');
    expect(shown).toMatch(/Cost\s+<data[^]*held[^]*tokens in/);
    expect(await countOf(gateway, 'chat_admitted')).toBe(1);
    await gateway.database.moveClock(70);
    const late = await postForm(browser, '/try', typed);
    expect([late.status, late.text.includes('This form was sent before')]).toEqual([409, true]);
    expect(late.text).toContain('Hello &#60;b&#62;there&#60;/b&#62;</textarea');
    await gateway.database.moveClock(86_400);
    await browser.get('/v1/credits');
    const nextDay = await eventually(async () => {
      const answer = await postForm(browser, '/try', typed);
      if (!answer.text.includes('too long ago')) throw new Error(answer.text);
      return answer;
    });
    expect(nextDay.status).toBe(409);
    expect(await countOf(gateway, 'chat_admitted')).toBe(1);
  });

  test('a visitor asks a free model, and is led to the sign-in for one that costs credit', async () => {
    const gateway = await startSite();
    const browser = gateway.browser();
    const answer = await sendForm(browser, '/try', { model: freeModel, prompt: 'Hello', system: '' });
    expect([answer.status, answer.text.includes('Free of charge.')]).toEqual([200, true]);
    const refused = await sendForm(browser, '/try', { model: paidModel, prompt: 'Hello', system: '' });
    expect(refused.status).toBe(402);
    expect(refused.text).toContain('<a href="/sign-in">Sign in</a>');
    expect(refused.text).toContain(
      'This model costs credit, and you are not signed in. Nothing was charged.',
    );
    expect(refused.text).toContain('Hello</textarea');
  });

  test.each([
    ['fault:status_500', 502, 'Nothing was charged. Send it again in a moment'],
    ['fault:bad_request', 400, 'Begin a new conversation'],
  ])('a refusal of the model for %s is shown, and the typed text is kept', async (prompt, status, advice) => {
    const gateway = await startSite();
    const browser = gateway.browser();
    await signInWith(gateway, browser, 5_000_000n);
    const answer = await sendForm(browser, '/try', { model: paidModel, prompt, system: '' });
    expect(answer.status).toBe(status);
    expect(answer.text).toContain(advice);
    expect(answer.text).toContain(`${prompt}</textarea`);
  });
});
