import * as schemas from '../../audit/http/schemas/refunds.ts';
import { auditListOperation } from './list-operation.ts';

export const refundsDueOperation = auditListOperation({
  path: '/audit/refunds-due',
  id: 'listRefundsDue',
  summary: 'List refunds due: payments without a delivered result',
  description: 'A payment leaves the list when its refund is recorded or its call is enqueued again.',
  query: schemas.refundsDueQuery,
  schema: schemas.refundsDue,
});
