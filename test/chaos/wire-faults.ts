import { setTimeout as sleep } from 'node:timers/promises';
import type { Freezer } from './freezer.ts';
import type { GatewaySlot } from './gateway-process.ts';
import type { Misfortune } from './misfortune.ts';
import type { StrikeHere } from './peers.ts';
import type { Behave, Message } from './postgres-proxy.ts';
import { type Phase, phasesOf } from './steps.ts';

export interface WireParts {
  readonly misfortune: Misfortune;
  readonly strike: StrikeHere;
  readonly slot: Pick<GatewaySlot, 'kill' | 'freeze' | 'name'>;
  readonly freezer: Freezer;
}

/** What happens to a gateway's messages to the database, appends above all. */
export function misbehaveOnWire(parts: WireParts): Behave {
  return async (message) => {
    if (!message.appends) return askBadly(parts.misfortune, message);
    const phases = [...phasesOf(message.appends)];
    for (const phase of phases) if (await parts.strike(`before_${phase}_append`)) return message.cut();
    for (const phase of phases) if (await strikeDuring(parts, phase, message)) return;
    const isDone = await appendBadly(parts.misfortune, message);
    if (isDone) return;
    await message.send();
    for (const phase of phases) if (await parts.strike(`after_${phase}_append`)) return message.cut();
    message.deliver();
  };
}

/**
 * Strikes while the append is on its way. One whose gateway was killed arrives all the same, perhaps when the next gateway
 * is up: nobody waits for its answer. True where the message has been dealt with.
 */
async function strikeDuring(
  { misfortune, slot, freezer }: WireParts,
  phase: Phase,
  message: Message,
): Promise<boolean> {
  const step = `during_${phase}_append` as const;
  const strike = misfortune.strike(step);
  if (!strike) return false;
  if (strike.what === 'kill_gateway') {
    if (!slot.kill()) return false;
    misfortune.note(`kill ${step}`, `gateway ${slot.name}`);
    await sleep(strike.ms);
    await message.send();
    message.cut();
    return true;
  }
  misfortune.note(`${strike.what} ${step}`, `gateway ${slot.name}, ${strike.ms} ms`);
  if (strike.what === 'freeze_gateway') slot.freeze(strike.ms);
  message.pass();
  if (strike.what === 'freeze_backend' && message.backendPid) freezer.freeze(message.backendPid, strike.ms);
  return true;
}

/** True where a fault has dealt with the message. */
async function appendBadly(misfortune: Misfortune, message: Message): Promise<boolean> {
  const fault = misfortune.draw('append');
  if (fault.kind === 'none') return false;
  misfortune.note(`append: ${fault.kind}`, [...(message.appends ?? [])].join(' '));
  switch (fault.kind) {
    case 'delay':
      await misfortune.pause(fault.ms);
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
      await misfortune.pause(300);
      message.cut();
      return true;
    case 'duplicate':
      await message.sendTwice();
      message.deliver();
      return true;
    case 'hold':
      await message.send();
      await misfortune.pause(fault.ms);
      message.deliver();
      return true;
    default:
      return false;
  }
}

async function askBadly(misfortune: Misfortune, message: Message): Promise<void> {
  const fault = misfortune.draw('query');
  if (fault.kind !== 'none') misfortune.note(`query: ${fault.kind}`);
  switch (fault.kind) {
    case 'delay':
      await misfortune.pause(fault.ms);
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
      await misfortune.pause(fault.ms);
      return message.deliver();
    default:
      return message.pass();
  }
}
