import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

/** Names every package that is loaded with the modules. */
async function packagesOf(...modules: readonly string[]): Promise<string> {
  const urls = modules.map((module) => new URL(module, import.meta.url).href);
  const program = `
    import { registerHooks } from 'node:module';
    const seen = new Set();
    registerHooks({ resolve: (name, context, next) => { seen.add(name); return next(name, context); } });
    for (const url of ${JSON.stringify(urls)}) await import(url);
    console.log([...seen].join('\\n'));
    process.exit(0);`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  return stdout;
}

test('a gateway loads neither the sign-in library without user accounts, nor OpenTelemetry without traces', async () => {
  const packages = await packagesOf(
    '../../../src/main.ts',
    '../../../src/app/chat.ts',
    '../../../src/app/jobs.ts',
  );
  expect(packages).not.toContain('better-auth');
  expect(packages).not.toContain('opentelemetry');
  const more = await packagesOf('../../../src/app/identity.ts', '../../../src/base/traces/tracing.ts');
  expect(more).toContain('better-auth');
  expect(more).toContain('@opentelemetry/sdk-trace');
});
