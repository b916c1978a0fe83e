import { setTimeout as sleep } from 'node:timers/promises';
import type { Ambushes } from './ambushes.ts';
import type { Freezer } from './freezer.ts';
import type { GatewaySlot } from './gateway-process.ts';
import type { Records } from './records.ts';
import type { FaultInjector } from './fault-injector.ts';
import type { StrikeHere } from './peers.ts';
import type { Behave, Message } from './postgres-proxy.ts';
import { type Phase, phasesOf } from './steps.ts';

export interface WireParts {
  readonly faults: FaultInjector;
  readonly strike: StrikeHere;
  readonly slot: Pick<GatewaySlot, 'kill' | 'freeze' | 'name'>;
  readonly freezer: Freezer;
  readonly ambushes: Ambushes;
  readonly records: Records;
}

/** Injects faults into a gateway's messages to the database, appends above all. */
export function injectWireFaults(parts: WireParts): Behave {
  return async (message) => {
    if (!message.appends) return injectQueryFault(parts.faults, message);
    noteStarts(parts.records, message);
    if (await stall(parts, message)) return;
    const phases = [...phasesOf(message.appends)];
    for (const phase of phases) if (await parts.strike(`before_${phase}_append`)) return message.cut();
    for (const phase of phases) if (await strikeDuring(parts, phase, message)) return;
    if (phases.includes('top_up')) await delayTopUp(parts.faults);
    const isDone = await injectAppendFault(parts.faults, message);
    if (isDone) return;
    await message.send();
    for (const phase of phases) if (await parts.strike(`after_${phase}_append`)) return message.cut();
    message.deliver();
  };
}

function noteStarts({ startSentAt }: Records, { appends, text }: Message): void {
  if (!appends?.has('settlement_started')) return;
  for (const [, nonce = ''] of text().matchAll(/"nonce":"(0x[0-9a-f]{64})"/g))
    if (!startSentAt.has(nonce)) startSentAt.set(nonce, Date.now());
}

/** Stalls a planned append; its gateway gets the answer when it is sent at last. True when the message has been handled. */
async function stall({ ambushes, faults, slot }: WireParts, message: Message): Promise<boolean> {
  const stalled = ambushes.stallOf(message.text());
  if (!stalled) return false;
  faults.count('stalled append', `gateway ${slot.name}`);
  try {
    await stalled.over;
    await message.send();
  } finally {
    stalled.end();
  }
  message.deliver();
  return true;
}

/**
 * Applies a strike while the append is in flight. The append of a killed gateway still arrives, perhaps when the next
 * gateway process is up. True when the message has been handled.
 */
async function strikeDuring(
  { faults, slot, freezer }: WireParts,
  phase: Phase,
  message: Message,
): Promise<boolean> {
  const step = `during_${phase}_append` as const;
  const strike = faults.takeStrike(step);
  if (!strike) return false;
  if (strike.what === 'kill_gateway') {
    if (!slot.kill()) return false;
    faults.count(`kill ${step}`, `gateway ${slot.name}`);
    await sleep(strike.ms);
    await message.send();
    message.cut();
    return true;
  }
  faults.count(`${strike.what} ${step}`, `gateway ${slot.name}, ${strike.ms} ms`);
  if (strike.what === 'freeze_gateway') slot.freeze(strike.ms);
  message.pass();
  if (strike.what === 'freeze_backend' && message.backendPid) freezer.freeze(message.backendPid, strike.ms);
  return true;
}

/** While it is delayed, the lease of its call may expire. */
async function delayTopUp(faults: FaultInjector): Promise<void> {
  const fault = faults.draw('top_up');
  if (fault.kind === 'none') return;
  faults.count('top-up delayed');
  await faults.pause(fault.ms);
}

/** True when a fault has handled the message. */
async function injectAppendFault(faults: FaultInjector, message: Message): Promise<boolean> {
  const fault = faults.draw('append');
  if (fault.kind === 'none') return false;
  faults.count(`append: ${fault.kind}`, [...(message.appends ?? [])].join(' '));
  switch (fault.kind) {
    case 'delay':
      await faults.pause(fault.ms);
      return false;
    case 'cut_before':
      message.cut();
      return true;
    case 'cut_after':
      await message.send();
      message.cut();
      return true;
    case 'error_before':
      message.refuse();
      return true;
    case 'error_after':
      await message.send();
      message.refuse();
      return true;
    case 'half':
      message.sendHalf();
      await faults.pause(300);
      message.cut();
      return true;
    case 'duplicate':
      await message.sendTwice();
      message.deliver();
      return true;
    case 'hold':
      await message.send();
      await faults.pause(fault.ms);
      message.deliver();
      return true;
    default:
      return false;
  }
}

async function injectQueryFault(faults: FaultInjector, message: Message): Promise<void> {
  const fault = faults.draw('query');
  if (fault.kind !== 'none') faults.count(`query: ${fault.kind}`);
  switch (fault.kind) {
    case 'delay':
      await faults.pause(fault.ms);
      return message.pass();
    case 'cut_before':
      return message.cut();
    case 'cut_after':
      await message.send();
      return message.cut();
    case 'error_after':
      await message.send();
      return message.refuse();
    case 'hold':
      await message.send();
      await faults.pause(fault.ms);
      return message.deliver();
    default:
      return message.pass();
  }
}
