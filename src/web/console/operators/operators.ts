import { tableSheet } from '../tables.ts';
import { isRole, operatorRoles } from '../../../base/values/operator-role.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { operatorNamePattern } from '../../../base/values/operator-words.ts';
import { sendInvitationMail } from '../../../accounts/use-cases/auth-mails.ts';
import { invitationUrl, inviteOperator } from '../../../accounts/use-cases/invitations.ts';
import {
  grantRole,
  removeFactors,
  type RoleChanger,
  withdrawRole,
} from '../../../accounts/use-cases/operators.ts';
import { findOperatorNamed, type ListedOperator, listOperators } from '../../../accounts/store/operators.ts';
import { noticeOf } from '../../pages/document.ts';
import { sectionView } from '../layout.ts';
import type { NoticeCode } from '../../pages/notices.ts';
import {
  badge,
  buttonForm,
  type Column,
  field,
  form,
  personName,
  selectField,
} from '../../pages/elements.ts';
import type { Answer, View } from '../../pages/visit.ts';
import type { OperatorVisit, Section } from '../visit.ts';

const path = '/console/operators';
const aboutName = {
  role: 'admin',
  shownAt: path,
  subject: (_: unknown, fields: URLSearchParams) => fields.get('name') ?? undefined,
} as const;

/** Who may use the console: invitations, roles and second factors. */
export const operatorsSection: Section = {
  path,
  label: 'Operators',
  role: 'admin',
  register(console) {
    console.showPresent(path, (visit) => operatorsView(visit), 'admin');

    console.act(`${path}/invite`, { ...aboutName, action: 'invite_operator' }, async (visit, { fields }) => {
      const invited = await invite(visit, fields);
      return invited ?? done('operator_invited');
    });

    console.act(`${path}/role`, { ...aboutName, action: 'set_role' }, async (visit, { fields }) => {
      const name = fields.get('name') ?? '';
      const role = fields.get('role') ?? undefined;
      const { userId } = (await findOperatorNamed(visit.site.ledger.pool, name)) ?? {};
      if (!isRole(role) || userId === undefined)
        return operatorsView(visit, 'There is no such operator or role.');
      const grant = await grantRole(visit.site.ledger, { name, userId, role, by: changerOf(visit) });
      return grant.kind === 'granted' ? done('role_changed') : operatorsView(visit, mistakes[grant.kind]);
    });

    console.act(`${path}/withdraw`, { ...aboutName, action: 'withdraw_role' }, async (visit, { fields }) => {
      const name = fields.get('name') ?? '';
      const { kind } = await withdrawRole(visit.site.ledger, { name, by: changerOf(visit) });
      return kind === 'last_admin' || kind === 'not_admin'
        ? operatorsView(visit, mistakes[kind])
        : done('role_withdrawn');
    });

    console.act(`${path}/factors`, { ...aboutName, action: 'remove_factors' }, async (visit, { fields }) => {
      const name = fields.get('name') ?? '';
      const { kind } = await removeFactors(visit.site.ledger, { name, by: changerOf(visit) });
      return kind === 'not_admin' ? operatorsView(visit, mistakes[kind]) : done('factors_removed');
    });
  },
};

const mistakes = {
  name_taken: 'This name, or this user, is another operator already. Names are never given twice.',
  last_admin: 'This is the last admin. Nothing was changed: make somebody else an admin first.',
  not_admin: 'You are no longer an admin. Nothing was changed.',
} as const;

function changerOf({ operator }: OperatorVisit): RoleChanger {
  return { name: operator.name, at: 'console' };
}

function done(notice: NoticeCode): Answer {
  return { kind: 'redirect', to: path, notice };
}

/** Undefined once the invitation is on its way. */
async function invite(visit: OperatorVisit, fields: URLSearchParams): Promise<View | undefined> {
  const { site, operator } = visit;
  const name = fields.get('name')?.trim() ?? '';
  const email = fields.get('email')?.trim() ?? '';
  const role = fields.get('role') ?? undefined;
  if (!operatorNamePattern.test(name))
    return operatorsView(visit, 'A name has 1 to 64 letters, digits, dots, dashes or underscores.', fields);
  if (!/^[^\s@]{1,64}@[^\s@]{1,189}$/.test(email))
    return operatorsView(visit, 'This is not an e-mail address.', fields);
  if (!isRole(role)) return operatorsView(visit, 'There is no such role.', fields);
  const invited = await inviteOperator(site.ledger, { name, email, role, by: changerOf(visit) });
  if (invited.kind === 'name_taken') return operatorsView(visit, mistakes.name_taken, fields);
  const url = invitationUrl(site.publicUrl(), invited.token);
  await sendInvitationMail(site.identity, email, { url, role, by: operator.name });
  return undefined;
}

async function operatorsView(visit: OperatorVisit, mistake?: string, typed?: URLSearchParams): Promise<View> {
  const operators = await listOperators(visit.site.ledger.pool);
  const columns: Column<ListedOperator>[] = [
    { label: 'Name', cell: ({ name }) => html`<strong>${name}</strong>` },
    {
      label: 'E-mail',
      cell: ({ email }) =>
        email === undefined ? html`<span class="muted">erased</span>` : personName(email),
    },
    {
      label: 'Second factor',
      cell: ({ hasFactor }) => (hasFactor ? badge('set up', 'good') : badge('none yet', 'warn')),
    },
    { label: 'Role', cell: (operator) => roleForm(visit, operator) },
    { label: 'Actions', isAction: true, cell: (operator) => actionsOf(visit, operator) },
  ];
  const body = html`${factorsNotice(operators)} ${tableSheet('Who may use the console', columns, operators)}
    <section class="sheet">
      <h2>Invite</h2>
      ${
        visit.site.identity.mailer
          ? form(
              visit,
              `${path}/invite`,
              html`${field({ label: 'Name', name: 'name', value: typed?.get('name'), hint: 'The ledger names this person by it, for ever. Not an e-mail address.', maxLength: 64, autocomplete: 'off' })}
                ${field({ label: 'E-mail', name: 'email', type: 'email', value: typed?.get('email'), hint: 'The link is sent there. It works once, within 72 hours.', maxLength: 254, autocomplete: 'off' })}
                ${selectField({ label: 'Role', name: 'role', values: operatorRoles, value: typed?.get('role') ?? 'viewer' })}
                <button>Send the invitation</button>`,
            )
          : html`<p>
              The gateway sends no mail: invite people with the command
              <code>tollbook operators invite</code>.
            </p>`
      }
    </section>`;
  return sectionView(path, 'Operators', body, { mistake });
}

/** How many there are, and whether each has a second factor. */
function factorsNotice(operators: readonly ListedOperator[]): Html {
  const withRole = operators.filter(({ role }) => role !== undefined);
  const without = withRole.filter(({ hasFactor }) => !hasFactor).length;
  const many = withRole.length === 1 ? '1 operator' : `${withRole.length} operators`;
  const missing =
    without === withRole.length ? 'none with a second factor yet' : `${without} without a second factor yet`;
  const text =
    without === 0
      ? `${many}, each with a second factor.`
      : `${many}, ${missing}: the next sign-in sets one up.`;
  return noticeOf({ tone: without === 0 ? 'good' : 'plain', text });
}

function roleForm(visit: OperatorVisit, { name, role, userId }: ListedOperator): Html {
  if (userId === undefined) return badge('erased');
  return form(
    visit,
    `${path}/role`,
    html`<span class="inline"
      ><input type="hidden" name="name" value="${name}" /><select name="role" aria-label="Role of ${name}">
        ${role === undefined && html`<option value="" selected>withdrawn</option>`}
        ${operatorRoles.map((one) => html`<option value="${one}" ${one === role && html`selected`}>${one}</option>`)}
      </select>
      <button class="plain small">Change role</button></span
    >`,
  );
}

function actionsOf(visit: OperatorVisit, { name, role, hasFactor }: ListedOperator): Html {
  const how = { look: 'quiet small', about: `of ${name}`, values: { name } };
  const button = (action: string, label: string): Html =>
    buttonForm(visit, `${path}/${action}`, label, { ...how, confirm: `${label} of ${name}?` });
  return html`<span class="inline"
    >${role !== undefined && button('withdraw', 'Withdraw role')}
    ${hasFactor && button('factors', 'Reset second factor')}</span
  >`;
}
