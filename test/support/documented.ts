import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { z } from 'zod';

const response = z.object({
  content: z.record(z.string(), z.unknown()).optional(),
  headers: z.record(z.string(), z.unknown()).optional(),
});
const openApi = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.object({ responses: z.record(z.string(), response) }))),
  components: z.object({ headers: z.record(z.string(), z.object({ schema: z.looseObject({}) })) }),
});

const longChars = 10_000;

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Says what of a real answer is not in the document; empty if it is all there. */
export type CheckAnswer = (method: string, path: string, answer: Answer) => readonly string[];

/** Holds answers against the document that their own gateway serves: status, every key, every header that it names. */
export async function documentOf(gateway: { readonly url: string }): Promise<CheckAnswer> {
  const served: unknown = await (await fetch(`${gateway.url}/openapi.json`)).json();
  const document = z.record(z.string(), z.unknown()).parse(served);
  const { paths, components } = openApi.parse(document);
  const ajv = new Ajv2020({ strict: false, validateFormats: false, validateSchema: false });
  ajv.addSchema(document, 'openapi');

  const validators = new Map<string, ValidateFunction>();
  const faultsOf = (pointer: readonly string[], value: unknown): string[] => {
    const path = pointer.map((key) => encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1')));
    const reference = `openapi#/${path.join('/')}`;
    const validate = validators.get(reference) ?? ajv.compile({ $ref: reference });
    validators.set(reference, validate);
    return validate(value) ? [] : [`${pointer.join(' ')}: ${ajv.errorsText(validate.errors)}`];
  };

  const headerFaults = (described: readonly string[], { headers }: Pick<Answer, 'headers'>): string[] =>
    Object.entries(components.headers).flatMap(([name, { schema }]) => {
      const value = headers.get(name);
      if (value === null) return [];
      if (!described.includes(name)) return [`the header ${name} is not described`];
      const at = ['components', 'headers', name, 'schema'];
      if ('contentSchema' in schema) {
        const decoded: unknown = JSON.parse(Buffer.from(value, 'base64').toString('utf8'));
        return faultsOf([...at, 'contentSchema'], decoded);
      }
      return faultsOf(at, schema['type'] === 'integer' ? Number(value) : value);
    });

  // the last long answer of each kind that was right: the document and the models are read again and again
  const sound = new Map<string, string>();
  const bodyFaults = (
    at: readonly string[],
    types: readonly string[],
    answer: Pick<Answer, 'text' | 'headers'>,
  ) => {
    const type = answer.headers.get('content-type')?.split(';', 1)[0] ?? '';
    if (types.length === 0) return answer.text === '' ? [] : ['a body where none is described'];
    if (!types.includes(type)) return [`${type} is not described`];
    const pointer = [...at, 'content', type, 'schema'];
    const long = answer.text.length < longChars ? undefined : pointer.join(' ');
    if (long !== undefined && sound.get(long) === answer.text) return [];
    const body: unknown = type === 'application/json' ? JSON.parse(answer.text) : answer.text;
    const faults = faultsOf(pointer, body);
    if (long !== undefined && faults.length === 0) sound.set(long, answer.text);
    return faults;
  };

  const templates = Object.entries(paths).map(([template, methods]) => ({
    template,
    methods,
    pattern: patternOf(template),
  }));
  return (method, path, answer) => {
    // a fixed path may look like one with a parameter, of another operation
    const known = templates.filter(
      ({ methods, pattern }) => methods[method.toLowerCase()] && pattern.test(path),
    );
    const [template] = known
      .map((one) => one.template)
      .toSorted((a, b) => a.split('{').length - b.split('{').length);
    const found = template && paths[template]?.[method.toLowerCase()]?.responses[answer.status];
    if (!found) return [`${method} ${path} ${answer.status} is not described: ${answer.text}`];
    const at = ['paths', template, method.toLowerCase(), 'responses', String(answer.status)];
    return [
      ...bodyFaults(at, Object.keys(found.content ?? {}), answer),
      ...headerFaults(Object.keys(found.headers ?? {}), answer),
    ];
  };
}

function patternOf(template: string): RegExp {
  const pattern = template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+');
  return new RegExp(`^${pattern}(?:\\?.*)?$`);
}
