import { parseCredit } from '../../../base/values/price.ts';
import { apiKeyNamePattern } from '../../../accounts/rules/api-key.ts';
import { html, type Html } from '../../../base/values/html.ts';
import type { ApiKeyRequest } from '../../../accounts/use-cases/user-api-keys.ts';
import { field, form } from '../elements.ts';
import type { SignedInChatVisit } from '../visit.ts';

type Mistakes = Readonly<Partial<Record<'name' | 'cap' | 'budget' | 'models' | 'expires', string>>>;

export type ReadKeyForm =
  | { readonly kind: 'read'; readonly request: ApiKeyRequest }
  | { readonly kind: 'wrong'; readonly mistakes: Mistakes };

/** What the form of a new key says. A key is valid to the end of its last UTC day. */
export function readKeyForm(
  fields: URLSearchParams,
  known: { readonly has: (model: string) => boolean },
  nowMs: number,
): ReadKeyForm {
  const text = (name: string): string => fields.get(name)?.trim() ?? '';
  const name = text('name');
  const cap = text('cap').replace(',', '.');
  const capMicros = cap === '' ? undefined : parseCredit(cap);
  const budget = text('budget').replace(',', '.');
  const budgetMicros = budget === '' ? undefined : parseCredit(budget);
  const models = fields.getAll('model');
  const expires = text('expires');
  const expiresAt = expires === '' ? undefined : new Date(`${expires}T23:59:59.999Z`);
  const isPast = expiresAt !== undefined && !(expiresAt.getTime() > nowMs);
  const mistakes: Mistakes = {
    ...(!apiKeyNamePattern.test(name) && { name: 'A key needs a name of 1 to 64 characters.' }),
    ...(cap !== '' && !capMicros && { cap: amountMistake }),
    ...(budget !== '' && !budgetMicros && { budget: amountMistake }),
    ...(models.some((model) => !known.has(model)) && { models: 'One of these models is no longer offered.' }),
    ...(isPast && { expires: 'This is not a day to come.' }),
  };
  if (Object.keys(mistakes).length > 0) return { kind: 'wrong', mistakes };
  const period = fields.get('period') === 'day' ? 'day' : 'month';
  return {
    kind: 'read',
    request: {
      name,
      models: models.length === 0 ? undefined : models,
      capMicros,
      budget: budgetMicros === undefined ? undefined : { micros: budgetMicros, period },
      expiresAt,
    },
  };
}

const amountMistake = 'An amount above zero, such as 5 or 2.50.';

export function keyForm(visit: SignedInChatVisit, values: URLSearchParams, mistakes: Mistakes): Html {
  const { models, settings } = visit.site.chat();
  const { currency } = settings;
  const isMonth = values.get('period') !== 'day';
  const chosen = new Set(values.getAll('model'));
  const value = (name: string): string => values.get(name) ?? '';
  const today = new Date().toISOString().slice(0, 10);
  const body = html`${field({ label: 'Name', name: 'name', value: value('name'), error: mistakes.name, maxLength: 64, autocomplete: 'off', hint: 'For example where the key is used.' })}
    ${field({ label: `Spending limit in all, in ${currency}`, name: 'cap', value: value('cap'), error: mistakes.cap, inputMode: 'decimal', autocomplete: 'off', isOptional: true })}
    ${field({ label: `Spending limit a period, in ${currency}`, name: 'budget', value: value('budget'), error: mistakes.budget, inputMode: 'decimal', autocomplete: 'off', isOptional: true })}
    <div class="field">
      <label for="period">Period of that limit</label
      ><select id="period" name="period">
        <option value="month" ${isMonth && html`selected`}>month</option>
        <option value="day" ${!isMonth && html`selected`}>day</option>
      </select>
    </div>
    ${field({ label: 'Last day', name: 'expires', type: 'date', value: value('expires'), error: mistakes.expires, min: today, isOptional: true, hint: 'The key is refused after this day.' })}
    <fieldset>
      <legend>Models <span class="muted">none chosen: all, also later ones</span></legend>
      <div class="choices">
        ${[...models.keys()].map(
          (model) =>
            html`<label
              ><input
                type="checkbox"
                name="model"
                value="${model}"
                ${chosen.has(model) && html`checked`}
              /><code>${model}</code></label
            >`,
        )}
      </div>
      ${mistakes.models !== undefined && html`<p class="mistake">${mistakes.models}</p>`}
    </fieldset>
    <p class="actions"><button>Make the key</button><a href="/keys">Cancel</a></p>`;
  return form(visit, '/keys/new', body);
}
