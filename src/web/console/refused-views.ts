import type { OperatorRole } from '../../base/values/operator-role.ts';
import { problemView } from '../pages/problem.ts';
import type { View } from '../pages/visit.ts';

export function notOperator(): View {
  return problemView(
    403,
    'This account has no role in the console. Nothing was shown or changed. An administrator can invite it.',
    { title: 'Not an operator', to: ['/console/sign-in', 'Sign in as another user'] },
  );
}

export function needsRole(role: OperatorRole): View {
  return problemView(403, `This needs the role ${role}, which yours does not include. Nothing was changed.`, {
    title: 'Not permitted',
    to: ['/console', 'To the overview'],
  });
}
