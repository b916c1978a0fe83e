import type { ChatContext } from '../../../chat/use-cases/context.ts';
import type { OperatorVisit } from '../site.ts';

/** The models of the configuration in force. The section is offered only where there are some. */
export function contextOf({ site }: OperatorVisit): ChatContext {
  if (!site.chat) throw new Error('this gateway sells no models');
  return site.chat();
}
