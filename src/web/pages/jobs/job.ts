import { refusals } from '../../../base/errors/refusal.ts';
import { parseJobId } from '../../../base/values/job.ts';
import { indentedJson } from '../../../base/values/indented-json.ts';
import { findJob, type Job } from '../../../jobs/use-cases/catalog.ts';
import type { JobsContext } from '../../../jobs/use-cases/context.ts';
import { readable } from '../filters.ts';
import { problemView, notFound } from '../problem.ts';
import type { Pages } from '../serve.ts';
import type { Answer, Visit } from '../visit.ts';
import { catalogueView, jobPath } from './catalogue.ts';
import { isJson, mistakesOf, type Mistakes, noMistakes, readMembers, wholeName } from './form-values.ts';
import { firstForm, type InputForm, inputFormOf, type JobForm, jobView } from './job-view.ts';
import { receiptPages } from './receipt.ts';
import { receiptsPage } from './receipts.ts';
import { formIdOf, newFormId, orderOf, orderView } from './order.ts';

/** Percent encoding makes typed text longer. */
const maxFormBytes = 131_072;
const maxJsonChars = 20_000;

const isPlace = (text: string): boolean => /^\d+-\d+$/.test(text);

/** What is sold, and each job with a form for its input. Buying needs no account. */
export function jobPages(pages: Pages, current: () => JobsContext): void {
  pages.show(
    '/jobs',
    readable({ after: isPlace }, (visit) => catalogueView(visit, current())),
  );

  receiptsPage(pages, current);
  receiptPages(pages, current);

  const path = '/jobs/:service/:index';
  pages.show(path, (visit) =>
    withJob(current(), visit, (context, job) =>
      jobView(context, job, firstForm(job, visit.query, newFormId())),
    ),
  );

  // checks and shows the typed values, and writes nothing. It has its own address, so that the browser's back button returns to the form
  pages.show(`${path}/order`, (visit) =>
    withJob(current(), visit, (_, job) => ({ kind: 'redirect', to: jobPath(job) })),
  );
  pages.take(`${path}/order`, { isLookUp: true, maxBytes: maxFormBytes }, (visit, { fields }) =>
    withJob(current(), visit, (context, job) => answerForm(visit, context, job, fields)),
  );
}

function withJob(
  context: JobsContext,
  { params }: Visit,
  answer: (context: JobsContext, job: Job) => Answer,
): Answer {
  const id = parseJobId(params['service'] ?? '', params['index'] ?? '');
  const job = id && findJob(context.catalog, id);
  return job?.isSold ? answer(context, job) : notFound('job');
}

function answerForm(visit: Visit, context: JobsContext, job: Job, fields: URLSearchParams): Answer {
  const formId = formIdOf(fields);
  const form = inputFormOf(job, fields.get('mode') === 'whole');
  if (form.kind === 'none' || job.isTopUp || job.route)
    return problemView(415, refusals.unsupported_media_type.sentence);
  const again = (mistakes: Mistakes, more: Partial<JobForm> = {}): Answer => {
    const typed = { fields, isTyped: true, mistakes };
    return jobView(context, job, { form, typed, whole: fields.get(wholeName) ?? '', formId, ...more });
  };
  const read = readInput(form, fields);
  const as = fields.get('as');
  // another order than the one that was shown
  if (as === 'change') return again(noMistakes, { formId: newFormId() });
  if (as === 'json') {
    const whole = indentedJson(read.body, maxJsonChars);
    return again(noMistakes, { form: inputFormOf(job, true), whole });
  }
  const checked = checkBody(context, job, form, read);
  if (checked !== undefined) return again(checked, { status: refusals.input_invalid.status });
  const order = orderOf(job, formId, { body: read.body, contentType: form.contentType });
  return orderView(visit, context, job, order, fields);
}

interface ReadInput {
  readonly body: string;
  readonly mistakes: Mistakes;
}

function readInput(form: InputForm, fields: URLSearchParams): ReadInput {
  if (form.kind === 'members') {
    const { json: body, mistakes } = readMembers(form.members, fields);
    return { body, mistakes };
  }
  const body = (fields.get(wholeName) ?? '').replaceAll('\r\n', '\n');
  const isWrong = form.kind === 'whole' && form.isJson && !isJson(body);
  return { body, mistakes: { of: new Map(isWrong ? [[wholeName, 'This is not JSON.']] : []), others: [] } };
}

/** What is wrong with an input; undefined if the job takes it. */
function checkBody(
  { config }: JobsContext,
  { input }: Job,
  form: InputForm,
  { body, mistakes }: ReadInput,
): Mistakes | undefined {
  if (mistakes.of.size > 0) return mistakes;
  const bytes = Buffer.from(body);
  if (bytes.length > config.limits.maxBodyBytes)
    return { of: new Map(), others: [`The job takes at most ${config.limits.maxBodyBytes} bytes.`] };
  const faults = input?.check?.(bytes) ?? [];
  return faults.length === 0 ? undefined : mistakesOf(faults, form.kind === 'members' ? form.members : []);
}
