/**
 * `npm run proto` writes the TypeScript of proto/ into src/app/pricing/generated/, without a network: protobufjs reads the file, and the
 * official plugin, protoc-gen-es, generates. A test compares.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import {
  CodeGeneratorRequestSchema,
  CodeGeneratorResponseSchema,
  type DescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
  type FileDescriptorProtoSchema,
  type ServiceDescriptorProtoSchema,
  type SourceCodeInfo_LocationSchema,
} from '@bufbuild/protobuf/wkt';
import protobuf from 'protobufjs';

const root = path.resolve(import.meta.dirname, '..');
const name = 'tollbook/pricing/v1/pricing.proto';
const packageName = 'tollbook.pricing.v1';
export const generatedFile = path.join(root, 'src/app/pricing/generated/pricing_pb.ts');

type Messages = MessageInitShape<typeof DescriptorProtoSchema>;
type Services = MessageInitShape<typeof ServiceDescriptorProtoSchema>;
type Location = MessageInitShape<typeof SourceCodeInfo_LocationSchema>;

/** The numbers of descriptor.proto that a comment's path is made of. */
const pathOf = { message: 4, field: 2, service: 6, method: 2 } as const;

const scalars: Readonly<Record<string, Type>> = {
  string: Type.STRING,
  bytes: Type.BYTES,
  uint32: Type.UINT32,
  uint64: Type.UINT64,
};

/** The generated TypeScript. */
export function generate(): string {
  const request = create(CodeGeneratorRequestSchema, {
    fileToGenerate: [name],
    parameter: 'target=ts,import_extension=ts,erasable_syntax=true',
    protoFile: [describeFile()],
  });
  const output = execFileSync(
    process.execPath,
    [path.join(root, 'node_modules/@bufbuild/protoc-gen-es/bin/protoc-gen-es')],
    { input: toBinary(CodeGeneratorRequestSchema, request) },
  );
  const response = fromBinary(CodeGeneratorResponseSchema, output);
  const [file] = response.file;
  if (!file || response.error !== '') throw new Error(`protoc-gen-es: ${response.error}`);
  return file.content;
}

/** protobufjs has its own conversion, which leaves out comments, presence and full type names. */
function describeFile(): MessageInitShape<typeof FileDescriptorProtoSchema> {
  const source = readFileSync(path.join(root, 'proto', name), 'utf8');
  const parsed = protobuf.parse(source, { keepCase: true, alternateCommentMode: true });
  parsed.root.resolveAll();
  const space = parsed.root.lookup(packageName);
  if (!(space instanceof protobuf.Namespace)) throw new Error(`${name} declares no ${packageName}`);
  const types = space.nestedArray.filter((one) => one instanceof protobuf.Type);
  const services = space.nestedArray.filter((one) => one instanceof protobuf.Service);
  const location: Location[] = [];
  const note = (at: number[], comment: string | null): void => {
    // as protoc keeps it: with the blank behind the slashes
    if (comment !== null) location.push({ path: at, leadingComments: comment.replaceAll(/^(?=.)/gm, ' ') });
  };
  return {
    name,
    package: packageName,
    syntax: 'proto3',
    messageType: types.map((type, index) => describeMessage(type, [pathOf.message, index], note)),
    service: services.map((service, index) => describeService(service, [pathOf.service, index], note)),
    sourceCodeInfo: { location },
  };
}

type Note = (at: number[], comment: string | null) => void;

function describeMessage(type: protobuf.Type, at: number[], note: Note): Messages {
  note(at, type.comment);
  const optional = type.fieldsArray.filter((field) => field.partOf);
  return {
    name: type.name,
    field: type.fieldsArray.map((field, index) => {
      note([...at, pathOf.field, index], field.comment);
      const typeName = field.resolvedType?.fullName;
      const scalar = scalars[field.type];
      if (typeName === undefined && scalar === undefined) throw new Error(`${field.fullName}: ${field.type}`);
      return {
        name: field.name,
        number: field.id,
        label: field.repeated ? Label.REPEATED : Label.OPTIONAL,
        type: scalar ?? Type.MESSAGE,
        ...(typeName === undefined ? {} : { typeName }),
        jsonName: protobuf.util.camelCase(field.name),
        ...(field.partOf ? { proto3Optional: true, oneofIndex: optional.indexOf(field) } : {}),
      };
    }),
    oneofDecl: optional.map((field) => ({ name: `_${field.name}` })),
  };
}

function describeService(service: protobuf.Service, at: number[], note: Note): Services {
  note(at, service.comment);
  return {
    name: service.name,
    method: service.methodsArray.map((method, index) => {
      note([...at, pathOf.method, index], method.comment);
      return {
        name: method.name,
        inputType: method.resolvedRequestType?.fullName ?? '',
        outputType: method.resolvedResponseType?.fullName ?? '',
      };
    }),
  };
}

if (import.meta.main) writeFileSync(generatedFile, generate());
