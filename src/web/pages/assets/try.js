// The page to try a model: a conversation, streamed from the API by the visitor's own session. Without this module the form asks once.
// What people and models write is text: it is never read as markup.

import { amountText } from './amounts.js';

const form = document.querySelector('[data-try] form');
const turns = document.querySelector('[data-turns]');
const isUser = turns?.dataset.user === 'yes';
const currency = turns?.dataset.currency ?? '';
const microsPerUnit = 1_000_000n;
const charsPerToken = 4;
/** The cost of an answer is recorded within milliseconds after it. */
const costTries = 10;

/** The conversation so far, as the model gets it. */
let messages = [];
let totalMicros = 0n;
/** Ends the answer under way. */
let running;

if (form) {
  const part = (name) => form.querySelector(`[data-${name}]`);
  const { model: modelField, system: systemField, prompt: promptField } = form.elements;
  const [send, stop, anew, total, status] = ['send', 'stop', 'new', 'total', 'status'].map(part);
  part('keys').hidden = false;
  // the API has its own limits
  for (const field of [promptField, systemField]) field.removeAttribute('maxlength');

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    delete form.dataset.sent;
    if (!running && promptField.value.trim() !== '') void ask(promptField.value);
  });
  promptField.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.requestSubmit();
  });
  stop.addEventListener('click', () => running?.abort());
  anew.addEventListener('click', () => {
    messages = [];
    totalMicros = 0n;
    turns.replaceChildren();
    anew.hidden = total.hidden = true;
    promptField.focus();
  });

  const setRunning = (controller) => {
    running = controller;
    send.hidden = controller !== undefined;
    stop.hidden = controller === undefined;
    if (controller) anew.hidden = true;
    else anew.hidden = turns.childElementCount === 0;
  };

  const ask = async (text) => {
    const option = modelField.selectedOptions[0];
    const turn = newTurn(text, option.value);
    const system = systemField.value.trim() === '' ? [] : [{ role: 'system', content: systemField.value }];
    const asked = { role: 'user', content: text };
    const request = { model: option.value, messages: [...system, ...messages, asked] };
    promptField.value = '';
    status.textContent = 'The model is asked.';
    setRunning(new AbortController());
    const answer = await complete(turn, option, request, running.signal);
    setRunning(undefined);
    turn.root.removeAttribute('aria-busy');
    if (answer.text !== '') messages.push(asked, { role: 'assistant', content: answer.text });
    else {
      turn.root.classList.add('unanswered');
      // a question without an answer can be asked again
      if (promptField.value === '') promptField.value = text;
    }
    if (answer.advice) turn.advise(answer.advice, answer.message);
    if (isUser && answer.id) await showCost(turn, answer.id);
    else if (answer.text !== '') turn.say(freeOfCharge(answer));
    status.textContent = answer.advice ? 'The answer did not come to its end.' : 'The answer is complete.';
    promptField.focus({ preventScroll: true });
    follow(true);
  };

  const showCost = async (turn, id) => {
    const record = await readRecord(id);
    const link = linkTo(`/usage/generation?id=${id}`, 'Details');
    if (record === undefined)
      return turn.say('Its cost could not be read: your session may have ended. ', link);
    if (record.status === 'running') return turn.say('Its cost is not recorded yet. ', link);
    if (record.cost === null) return turn.say('Nothing was charged. ', link);
    const held = record.held === null ? [] : [', of ', amount(record.held), ' held'];
    const tokens = ` · ${record.prompt_tokens} tokens in, ${record.completion_tokens} out · `;
    turn.say('Cost ', amount(record.cost), ...held, tokens, link);
    totalMicros += microsIn(record.cost);
    total.replaceChildren('This conversation cost ', amount(textOf(totalMicros)), ' so far.');
    total.hidden = totalMicros === 0n;
    const credits = await readJson('/v1/credits');
    if (credits)
      document.querySelector('[data-balance]')?.replaceChildren('You can spend ', amount(credits.balance));
  };
}

/** An empty turn of the conversation, below the last one. */
function newTurn(text, model) {
  const root = document.querySelector('template[data-turn]').content.cloneNode(true).firstElementChild;
  const part = (name) => root.querySelector(`[data-${name}]`);
  part('asked').textContent = text;
  part('model').textContent = model;
  const answer = document.createTextNode('');
  part('answer').replaceChildren(answer);
  root.setAttribute('aria-busy', 'true');
  turns.append(root);
  root.scrollIntoView({ block: 'end' });
  return {
    root,
    write(more) {
      const isAtEnd = isAtBottom();
      answer.appendData(more);
      follow(isAtEnd);
    },
    say: (...content) => part('facts').replaceChildren(...content),
    advise(advice, message) {
      const said = document.createElement('p');
      said.className = 'notice warn';
      said.setAttribute('role', 'alert');
      said.append(...(message ? [`${message} `] : []), advice);
      part('facts').before(said);
    },
  };
}

/** Asks the model, and writes its answer into the turn as it arrives. Never throws. */
async function complete(turn, option, { model, messages: told }, signal) {
  const body = { model, messages: told, stream: true, stream_options: { include_usage: true } };
  const answer = { text: '', id: undefined, advice: undefined, message: undefined, left: undefined };
  let isDone = false;
  let estimate;
  try {
    const response = await fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal,
    });
    if (!response.ok) return { ...answer, ...(await refusalOf(response)) };
    answer.id = response.headers.get('x-request-id');
    answer.left = /"day";r=(\d+)/.exec(response.headers.get('ratelimit') ?? '')?.[1];
    estimate = startEstimate(turn, option, told, answer.id);
    for await (const data of eventsOf(response.body)) {
      if (data === '[DONE]') isDone = true;
      else {
        const { choices } = JSON.parse(data);
        const { content, reasoning_content: thought } = choices?.[0]?.delta ?? {};
        if (typeof content === 'string') {
          answer.text += content;
          turn.write(content);
        }
        estimate.add(String(content ?? '').length + String(thought ?? '').length);
      }
    }
    if (isDone) return answer;
    return { ...answer, advice: adviceOn('cut') };
  } catch {
    if (!signal.aborted) return { ...answer, advice: adviceOn(answer.id ? 'cut' : 'lost') };
    return { ...answer, advice: adviceOn(answer.id ? 'stopped' : 'stopped_early') };
  } finally {
    estimate?.end();
  }
}

/** The data of each server-sent event. */
async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ''; ;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = `${rest}${value}`.split(/\r?\n\r?\n/);
    rest = events.pop();
    for (const event of events) {
      const lines = event.split(/\r?\n/).filter((line) => line.startsWith('data:'));
      if (lines.length > 0) yield lines.map((line) => line.slice(5).trimStart()).join('\n');
    }
  }
}

/** Says about what the answer costs so far, by the model's prices and the length of the texts. */
function startEstimate(turn, { dataset }, told, id) {
  const [input, output] = [dataset.input, dataset.output].map(Number);
  const promptTokens = tokensOf(told.reduce((sum, { content }) => sum + content.length, 0));
  let chars = 0;
  let ofHeld = [];
  let isOver = false;
  const show = () => {
    if (isOver) return;
    if (input + output === 0) return turn.say('The model writes.');
    // a price is in billionths, for a million tokens
    const micros = Math.ceil((promptTokens * input + tokensOf(chars) * output) / 1e9);
    turn.say('About ', amount(textOf(BigInt(micros))), ' so far', ...ofHeld);
  };
  const readHeld = async () => {
    const record = await readJson(`/v1/generation?id=${id}`);
    if (record?.held) ofHeld = [', of at most ', amount(record.held), ' held'];
    show();
  };
  if (isUser && input + output > 0) void readHeld();
  return {
    add(more) {
      chars += more;
      show();
    },
    end() {
      isOver = true;
      turn.say();
    },
  };
}

function tokensOf(chars) {
  return Math.ceil(chars / charsPerToken);
}

/** Why there is no answer, and what to do next. */
async function refusalOf(response) {
  const { error } = await response.json().catch(() => ({}));
  const isLast = response.headers.get('x-should-retry') === 'false';
  const waitSecs = isLast ? undefined : response.headers.get('retry-after');
  let code = error?.code ?? 'other';
  if (response.status === 429 && isLast) code = 'day_used_up';
  // a session whose cookie is gone looks like none
  if (response.status === 402) {
    if (!isUser) code = 'sign_in';
    else if ((await readJson('/v1/credits')) === undefined) code = 'session';
  }
  const advice = adviceOn(code, response.status);
  // what follows in it is for programs
  const [what] = error?.message?.split(' Nothing was charged.', 1) ?? [];
  const said = [what, waitSecs && `Wait ${waitSecs} seconds.`].filter(Boolean).join(' ');
  return { advice, message: 'whole' in advice.dataset ? undefined : said };
}

/** The page has it, in the order in which the first one that fits counts. */
function adviceOn(code, status) {
  const all = [...document.querySelector('template[data-advice]').content.children];
  const fits = ({ dataset }) =>
    dataset.codes.split(' ').includes(code) ||
    (status && dataset.statuses.split(' ').includes(String(status)));
  return (all.find(fits) ?? all.at(-1)).cloneNode(true);
}

function freeOfCharge({ left }) {
  return left === undefined ? 'Free of charge.' : `Free of charge. ${left} more today.`;
}

/** The record of a completion once it is settled, or its last state; undefined if it cannot be read. */
async function readRecord(id) {
  let record;
  for (let tries = 0; tries < costTries; tries++) {
    record = await readJson(`/v1/generation?id=${id}`);
    if (record?.status !== 'running') return record;
    await new Promise((resolve) => setTimeout(resolve, 20 * 2 ** tries));
  }
  return record;
}

async function readJson(path) {
  try {
    const response = await fetch(path);
    return response.ok ? await response.json() : undefined;
  } catch {
    return undefined;
  }
}

function linkTo(path, text) {
  const link = document.createElement('a');
  link.href = path;
  link.textContent = text;
  return link;
}

/** An amount with its unit; the exact amount on hover. */
function amount(text) {
  const shown = document.createElement('data');
  shown.className = 'amount';
  shown.value = text;
  shown.title = `${text} ${currency}`;
  const unit = document.createElement('span');
  unit.className = 'unit';
  unit.textContent = currency;
  shown.append(amountText(text), ' ', unit);
  return shown;
}

function microsIn(text) {
  const [whole, fraction = ''] = text.split('.');
  return BigInt(whole) * microsPerUnit + BigInt(fraction.padEnd(6, '0'));
}

function textOf(micros) {
  const fraction = String(micros % microsPerUnit)
    .padStart(6, '0')
    .replace(/0+$/, '');
  return `${micros / microsPerUnit}${fraction === '' ? '' : `.${fraction}`}`;
}

function isAtBottom() {
  return innerHeight + scrollY >= document.documentElement.scrollHeight - 120;
}

function follow(isAtEnd) {
  if (isAtEnd) scrollTo({ top: document.documentElement.scrollHeight });
}
