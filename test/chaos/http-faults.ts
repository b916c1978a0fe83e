import type { Fault } from './faults.ts';
import { type Answer, answerOf, type Reply } from '../support/http-proxy.ts';
import type { FaultInjector } from './fault-injector.ts';

const badGateway = answerOf(502, 'text/html', '<html>Bad Gateway</html>');
const garbage = answerOf(200, 'application/json', '{"isValid": true, "success": tr');

/** Lets an exchange suffer a fault that any peer can have. */
export async function applyFault(
  fault: Fault,
  forward: () => Promise<Answer>,
  faults: Pick<FaultInjector, 'pause'>,
): Promise<Reply> {
  switch (fault.kind) {
    case 'delay':
      await faults.pause(fault.ms);
      return forward();
    case 'duplicate': {
      const [, second] = await Promise.all([forward(), forward()]);
      return second;
    }
    case 'cut_before':
      return 'cut';
    case 'error_before':
      return badGateway;
    case 'garbage_before':
      return garbage;
    case 'hang_before':
      return silence(faults);
    case 'late':
      await faults.pause(fault.ms);
      await forward();
      return 'cut';
    case 'cut_after':
      await forward();
      return 'cut';
    case 'error_after':
      await forward();
      return badGateway;
    case 'garbage_after':
      // the body alone: a peer that has refused has not agreed
      return { ...garbage, status: (await forward()).status };
    case 'hang_after':
      await forward();
      return silence(faults);
    default:
      return forward();
  }
}

/** Says nothing while the misfortune lasts. */
async function silence(faults: Pick<FaultInjector, 'pause'>): Promise<Reply> {
  await faults.pause(60_000);
  return 'cut';
}
