/**
 * From zod 3 to JSON Schema, draft 7, of the input; in the form that zod 4 gives.
 *
 * zod 3 is complete: every kind of its types is named here, or refused.
 *
 * @module
 */
import { SchemaFault, step, wordsOf } from './fault.js';
import { numberSchema, sizes, stringSchema } from './zod3-checks.js';

const MAX_DEPTH = 60;
const DRAFT = 'http://json-schema.org/draft-07/schema#';

export class Zod3Converter {
  /** Schemas on the way from the root, each with its name if it contains itself. */
  #open = new Map();
  #definitions = {};
  #names = 0;

  /** @param {object} schema */
  root(schema) {
    let body = this.#convert(schema, '');
    // The root itself shows that it is an object.
    for (let hops = 0; body.$ref !== undefined && hops <= this.#names; hops += 1) {
      body = this.#definitions[body.$ref.slice('#/definitions/'.length)];
    }
    return this.#document(body);
  }

  /** @param {Record<string, object>} shape */
  shape(shape) {
    return this.#document(this.#fields(shape, ''));
  }

  #document(body) {
    const definitions = this.#names > 0 ? { definitions: this.#definitions } : {};
    return { $schema: DRAFT, ...body, ...definitions };
  }

  #convert(schema, place) {
    if (this.#open.has(schema)) return this.#reference(schema);
    if (this.#open.size > MAX_DEPTH) throw new SchemaFault(place, 'is nested too deeply');
    this.#open.set(schema, undefined);
    const converted = described(this.#byKind(schema, place), schema._def.description);
    const name = this.#open.get(schema);
    this.#open.delete(schema);
    if (name === undefined) return converted;
    this.#definitions[name] = converted;
    return { $ref: `#/definitions/${name}` };
  }

  #reference(schema) {
    const name = this.#open.get(schema) ?? `__schema${this.#names++}`;
    this.#open.set(schema, name);
    return { $ref: `#/definitions/${name}` };
  }

  #byKind({ _def: def }, place) {
    const inner = (schema, more = '') => this.#convert(schema, place + more);
    switch (def.typeName) {
      case 'ZodString':
        return stringSchema(def, place);
      case 'ZodNumber':
        return numberSchema(def, place);
      case 'ZodBoolean':
        return { type: 'boolean' };
      case 'ZodNull':
        return { type: 'null' };
      case 'ZodAny':
      case 'ZodUnknown':
        return {};
      case 'ZodNever':
        return { not: {} };
      case 'ZodLiteral':
        return literal(def.value, place);
      case 'ZodEnum':
        return { type: 'string', enum: [...def.values] };
      case 'ZodNativeEnum':
        return nativeEnum(def.values);
      case 'ZodObject':
        return this.#object(def, place);
      case 'ZodArray':
        return { type: 'array', items: inner(def.type, '[*]'), ...sizes(def) };
      case 'ZodTuple':
        return this.#tuple(def, place);
      case 'ZodRecord':
        return {
          type: 'object',
          propertyNames: inner(def.keyType),
          additionalProperties: inner(def.valueType, '.*'),
        };
      case 'ZodUnion':
        return { anyOf: def.options.map((option) => inner(option)) };
      case 'ZodDiscriminatedUnion':
        return { oneOf: [...def.options.values()].map((option) => inner(option)) };
      case 'ZodIntersection':
        return intersection(inner(def.left), inner(def.right));
      case 'ZodNullable':
        return { anyOf: [inner(def.innerType), { type: 'null' }] };
      case 'ZodDefault':
        return annotated(inner(def.innerType), { default: defaultOf(def, place) });
      case 'ZodOptional':
      case 'ZodCatch':
      case 'ZodReadonly':
        return inner(def.innerType);
      case 'ZodBranded':
        return inner(def.type);
      case 'ZodEffects':
        refuseCustom(def, place);
        return inner(def.schema);
      case 'ZodPipeline':
        return inner(def.in);
      case 'ZodLazy':
        return inner(def.getter());
      default:
        throw new SchemaFault(
          place,
          `cannot be written as a JSON Schema: JSON has no ${String(def.typeName).slice('Zod'.length)}`,
        );
    }
  }

  #object({ shape, unknownKeys, catchall }, place) {
    const fields = this.#fields(shape(), place);
    if (catchall._def.typeName !== 'ZodNever') {
      return { ...fields, additionalProperties: this.#convert(catchall, `${place}.*`) };
    }
    if (unknownKeys === 'strict') return { ...fields, additionalProperties: false };
    return unknownKeys === 'passthrough' ? { ...fields, additionalProperties: {} } : fields;
  }

  #fields(shape, place) {
    const fields = Object.entries(shape);
    const properties = fields.map(([key, schema]) => [
      key,
      this.#convert(schema, place + step(key)),
    ]);
    const required = fields.filter(([, schema]) => !isOptional(schema)).map(([key]) => key);
    return {
      type: 'object',
      properties: Object.fromEntries(properties),
      ...(required.length > 0 ? { required } : {}),
    };
  }

  #tuple({ items, rest }, place) {
    const converted = items.map((item, at) => this.#convert(item, `${place}[${at}]`));
    return {
      type: 'array',
      items: converted,
      additionalItems: rest ? this.#convert(rest, `${place}[*]`) : false,
      minItems: items.length,
      ...(rest ? {} : { maxItems: items.length }),
    };
  }
}

/** Whether an input may leave the value out; no code of the user's checks is run to find out. */
function isOptional(schema, depth = 0) {
  const { _def: def } = schema;
  if (depth > MAX_DEPTH) return false;
  const inner = (part) => isOptional(part, depth + 1);
  switch (def.typeName) {
    case 'ZodOptional':
    case 'ZodDefault':
    case 'ZodCatch':
    case 'ZodAny':
    case 'ZodUnknown':
      return true;
    case 'ZodNullable':
    case 'ZodReadonly':
      return inner(def.innerType);
    case 'ZodBranded':
      return inner(def.type);
    case 'ZodEffects':
      return inner(def.schema);
    case 'ZodPipeline':
      return inner(def.in);
    case 'ZodLazy':
      return inner(def.getter());
    case 'ZodUnion':
      return def.options.some(inner);
    case 'ZodIntersection':
      return inner(def.left) && inner(def.right);
    default:
      return false;
  }
}

function described(schema, description) {
  return description === undefined ? schema : annotated(schema, { description });
}

/** In draft 7 nothing beside a `$ref` counts. */
function annotated(schema, annotations) {
  return '$ref' in schema ? { allOf: [schema], ...annotations } : { ...schema, ...annotations };
}

/** `z.custom` and `z.instanceof` are checks on any value. */
function refuseCustom({ effect, schema }, place) {
  if (effect.type !== 'refinement' || schema._def.typeName !== 'ZodAny') return;
  throw new SchemaFault(
    place,
    'cannot be written as a JSON Schema: nothing tells what a custom check wants',
  );
}

function literal(value, place) {
  if (value === null) return { type: 'null', const: null };
  if (['string', 'number', 'boolean'].includes(typeof value)) {
    return { type: typeof value, const: value };
  }
  throw new SchemaFault(
    place,
    `cannot be written as a JSON Schema: JSON has no literal of type ${typeof value}`,
  );
}

/** Enums of numbers also map each number back to its name. */
function nativeEnum(entries) {
  const names = Object.keys(entries).filter((key) => typeof entries[entries[key]] !== 'number');
  const values = names.map((name) => entries[name]);
  const types = new Set(values.map((value) => typeof value));
  return types.size === 1 ? { type: [...types][0], enum: values } : { enum: values };
}

function defaultOf({ defaultValue }, place) {
  try {
    return defaultValue();
  } catch (error) {
    throw new SchemaFault(place, `has a default that throws: ${wordsOf(error)}`, error);
  }
}

/** Two plain objects become one, as gateways want no `allOf` in the place of the input's schema. */
function intersection(left, right) {
  if (!isPlainObject(left) || !isPlainObject(right)) return { allOf: [left, right] };
  if (Object.keys(left.properties).some((key) => Object.hasOwn(right.properties, key))) {
    return { allOf: [left, right] };
  }
  const required = [...(left.required ?? []), ...(right.required ?? [])];
  return {
    type: 'object',
    properties: { ...left.properties, ...right.properties },
    ...(required.length > 0 ? { required } : {}),
  };
}

function isPlainObject(schema) {
  return (
    schema.type === 'object' &&
    Object.keys(schema).every((key) => ['type', 'properties', 'required'].includes(key)) &&
    schema.properties !== undefined
  );
}
