import { expireCredit, grantCredit, openCreditAccount } from '../../src/accounts/use-cases/credit/credit.ts';
import type { LedgerEvent } from '../../src/ledger/rules/event.ts';
import { hex32Of } from '../support/synthetic-ledger.ts';
import { chart, credit } from './chart.ts';
import { count, type Sale, type World } from './world.ts';

const accounts = 6;
/** The name is one that stays as it is in the name of an account. */
const model = 'Small';
const perMinute = 1_000_000;

/** The credit account of a customer; each top-up of a payer credits the same. */
export async function accountOfTopUp(world: World, sale: Sale): Promise<number> {
  const at = world.payers.findIndex(({ address }) => address === sale.payment.payer);
  return openAccount(world, `customer-${at % accounts}`);
}

async function openAccount({ ledger, credit: balances }: World, name: string): Promise<number> {
  const id = await openCreditAccount(ledger, name);
  if (!balances.has(id)) balances.set(id, 0n);
  return id;
}

/** An operator gives credit to a customer who has bought none. */
export async function grant(world: World, name: string, micros: bigint): Promise<number> {
  const id = await openAccount(world, name);
  requireMoved(await grantCredit(world.ledger, id, micros));
  change(world, id, micros);
  world.granted.set(id, (world.granted.get(id) ?? 0n) + micros);
  world.model.post(world.nowMs, chart.creditGrants, chart.grantedCredit, credit, micros);
  count(world, 'grants');
  return id;
}

/** What is left of an account's credit expires. */
export async function expire(world: World, id: number): Promise<void> {
  const micros = world.credit.get(id) ?? 0n;
  if (micros === 0n) return;
  requireMoved(await expireCredit(world.ledger, id, micros));
  change(world, id, -micros);
  take(world, id, micros, { granted: chart.creditGrants, bought: chart.breakage });
  count(world, 'expiries');
}

/** Completions that use the credit of every account that has some. */
export async function chat(world: World, completions: number): Promise<void> {
  for (let n = 0; n < completions; n++) {
    const funded = [...world.credit].filter(([, micros]) => micros > 1_000n);
    if (funded.length === 0) return;
    const [id, micros] = world.random.pick(funded);
    const cost = BigInt(world.random.between(1, 1_000_000));
    await complete(world, id, cost < micros ? cost : micros);
  }
}

async function complete(world: World, accountId: number, cost: bigint): Promise<void> {
  const { ledger, options, counts } = world;
  const number = hex32Of(`${options.seed} chat ${counts.get('completions') ?? 0}`);
  const chatId = `${number.slice(2, 10)}-${number.slice(10, 14)}-4${number.slice(15, 18)}-8${number.slice(19, 22)}-${number.slice(22, 34)}`;
  const balance = world.credit.get(accountId) ?? 0n;
  const hold = cost * 2n < balance ? cost * 2n : balance;
  const of = { account_id: accountId, chat_id: chatId };
  const admitted: LedgerEvent[] = [
    { type: 'chat_admitted', data: { caller: 'api_key', account_id: accountId, model, streaming: false } },
    { type: 'credit_held', data: { ...of, amount_micros: String(hold) } },
  ];
  const admit = {
    chatId,
    processId: chatId,
    subject: `account:${accountId}`,
    perMinute,
    perDay: undefined,
    keyId: undefined,
    accountId,
    holdMicros: hold,
  };
  requireOk(await ledger.lane.appendCredit({ stream: `chat:${chatId}`, events: admitted, admit }));
  const used = { prompt_tokens: 10, completion_tokens: 20, is_estimate: false, cost_micros: String(cost) };
  const settled: LedgerEvent[] = [
    { type: 'chat_completed', data: { ending: 'completed', model, ...used } },
    { type: 'credit_captured', data: { ...of, amount_micros: String(cost), is_estimate: false } },
    ...(hold > cost
      ? [{ type: 'credit_released' as const, data: { ...of, amount_micros: String(hold - cost) } }]
      : []),
  ];
  const move = { op: 'settle' as const, chatId, capturedMicros: cost, releasedMicros: hold - cost };
  requireOk(await ledger.lane.appendCredit({ stream: `chat:${chatId}`, events: settled, credit: move }));
  change(world, accountId, -cost);
  take(world, accountId, cost, { granted: chart.usedGrants, bought: chart.chat(model) });
  count(world, 'completions');
}

/** Books credit that is used or expires: what was granted first, then what was bought. */
function take(
  { model: books, granted, nowMs }: World,
  id: number,
  micros: bigint,
  to: { readonly granted: string; readonly bought: string },
): void {
  const had = granted.get(id) ?? 0n;
  const first = had < micros ? had : micros;
  granted.set(id, had - first);
  books.post(nowMs, chart.grantedCredit, to.granted, credit, first);
  books.post(nowMs, chart.boughtCredit, to.bought, credit, micros - first);
}

function change({ credit: balances }: World, id: number, micros: bigint): void {
  balances.set(id, (balances.get(id) ?? 0n) + micros);
}

function requireMoved({ kind }: { readonly kind: string }): void {
  if (kind !== 'moved') throw new Error(`credit was not moved: ${kind}`);
}

function requireOk({ outcome }: { readonly outcome: string }): void {
  if (outcome !== 'ok') throw new Error(`a completion was not recorded: ${outcome}`);
}
