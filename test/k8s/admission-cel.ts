/**
 * As much of CEL as the admission policy is written in, so that a test can see what it makes of a
 * pod. The API server is the judge of the rest; what it checks beyond the language is checked here
 * as well: the type of an object literal is the path of the field that the object is put into, and
 * maps and lists hold values of one type.
 */

type Scope = Readonly<Record<string, unknown>>;
type Expression = (scope: Scope) => unknown;

/** An object literal, with the type that it was given. */
class Message {
  readonly type: string;
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(type: string, fields: Readonly<Record<string, unknown>>) {
    this.type = type;
    this.fields = fields;
  }
}

/** Evaluates an expression. @throws {Error} On what the API server would refuse or is unknown. */
export function evaluate(text: string, scope: Scope): unknown {
  const reader = new Reader(text);
  const expression = reader.ternary();
  reader.end();
  return plain(expression(scope), undefined);
}

/** Literals as plain values, once their types are seen to match the fields they are in. */
function plain(value: unknown, field: string | undefined): unknown {
  if (Array.isArray(value)) return value.map((item) => plain(item, field));
  if (!(value instanceof Message)) return value;
  if (field !== undefined && value.type !== field) {
    throw new Error(`type mismatch: ${value.type} in the field ${field}`);
  }
  const isPatch = value.type === "JSONPatch";
  return Object.fromEntries(
    Object.entries(value.fields).map(([name, part]) => [
      name,
      // The value of a patch starts a path of its own.
      plain(part, isPatch ? undefined : `${value.type}.${name}`),
    ]),
  );
}

class Reader {
  readonly #tokens: readonly string[];
  #next = 0;

  constructor(text: string) {
    const token = /\s*("(?:[^"\\]|\\.)*"|[A-Za-z_]\w*|\d+|&&|\|\||==|[!?:+.,()[\]{}])/y;
    const tokens: string[] = [];
    const source = text.trimEnd();
    while (token.lastIndex < source.length) {
      const at = token.lastIndex;
      const found = token.exec(source)?.[1];
      if (found === undefined) throw new Error(`cannot read: ${source.slice(at, at + 30)}`);
      tokens.push(found);
    }
    this.#tokens = tokens;
  }

  end(): void {
    if (this.#next < this.#tokens.length) throw new Error(`unexpected ${this.#peek()}`);
  }

  ternary(): Expression {
    const condition = this.#binary(0);
    if (!this.#take("?")) return condition;
    const yes = this.ternary();
    this.#need(":");
    const no = this.ternary();
    return (scope) => (condition(scope) === true ? yes(scope) : no(scope));
  }

  /** Operators from the loosest to the tightest. */
  #binary(level: number): Expression {
    const entry = OPERATORS[level];
    if (entry === undefined) return this.#unary();
    const [operator, apply] = entry;
    let left = this.#binary(level + 1);
    while (this.#take(operator)) {
      const [first, second] = [left, this.#binary(level + 1)];
      left = (scope) => apply(first, second, scope);
    }
    return left;
  }

  #unary(): Expression {
    if (!this.#take("!")) return this.#member();
    const operand = this.#unary();
    return (scope) => operand(scope) !== true;
  }

  #member(): Expression {
    let value = this.#primary();
    while (this.#take(".")) {
      const name = this.#token();
      value = this.#take("(") ? this.#macro(value, name) : select(value, name);
    }
    return value;
  }

  /** `list.map(name, expression)` and `list.exists(name, expression)`. */
  #macro(list: Expression, macro: string): Expression {
    const name = this.#token();
    this.#need(",");
    const body = this.ternary();
    this.#need(")");
    const items = (scope: Scope): readonly unknown[] => list(scope) as readonly unknown[];
    if (macro === "map") {
      return (scope) => items(scope).map((item) => body({ ...scope, [name]: item }));
    }
    if (macro !== "exists") throw new Error(`no macro ${macro}`);
    return (scope) => items(scope).some((item) => body({ ...scope, [name]: item }) === true);
  }

  #primary(): Expression {
    const token = this.#token();
    if (token === "(") {
      const inner = this.ternary();
      this.#need(")");
      return inner;
    }
    if (token === "[") return this.#list();
    if (token === "{") return this.#map();
    if (/^["\d]/.test(token)) return always(JSON.parse(token));
    if (token === "true" || token === "false") return always(token === "true");
    if (token === "has" && this.#take("(")) return this.#has();
    if (token === "Object" || token === "JSONPatch") return this.#message(token);
    if (!/^[a-z]/.test(token)) throw new Error(`unexpected ${token}`);
    return select((scope) => scope, token);
  }

  /** Whether the last field of a path is there; those before it have to be. */
  #has(): Expression {
    const names = [this.#token()];
    while (this.#take(".")) names.push(this.#token());
    this.#need(")");
    const last = names.pop() as string;
    const owner = names.reduce<Expression>(select, (scope) => scope);
    return (scope) => last in (owner(scope) as Scope);
  }

  #list(): Expression {
    const items: Expression[] = [];
    while (!this.#take("]")) {
      items.push(this.ternary());
      if (this.#peek() !== "]") this.#need(",");
    }
    return (scope) => ofOneType(items.map((item) => item(scope)));
  }

  #map(): Expression {
    const entries: [string, Expression][] = [];
    while (!this.#take("}")) {
      const name = JSON.parse(this.#token()) as string;
      this.#need(":");
      entries.push([name, this.ternary()]);
      if (this.#peek() !== "}") this.#need(",");
    }
    return (scope) => {
      const values = ofOneType(entries.map(([, value]) => value(scope)));
      return Object.fromEntries(entries.map(([name], index) => [name, values[index]]));
    };
  }

  #message(root: string): Expression {
    let type = root;
    while (this.#take(".")) type += `.${this.#token()}`;
    this.#need("{");
    const fields: [string, Expression][] = [];
    while (!this.#take("}")) {
      const name = this.#token();
      this.#need(":");
      fields.push([name, this.ternary()]);
      if (this.#peek() !== "}") this.#need(",");
    }
    return (scope) =>
      new Message(type, Object.fromEntries(fields.map(([name, value]) => [name, value(scope)])));
  }

  #peek(): string | undefined {
    return this.#tokens[this.#next];
  }

  #token(): string {
    const token = this.#peek();
    if (token === undefined) throw new Error("unexpected end");
    this.#next += 1;
    return token;
  }

  #take(token: string): boolean {
    if (this.#peek() !== token) return false;
    this.#next += 1;
    return true;
  }

  #need(token: string): void {
    if (!this.#take(token)) throw new Error(`expected ${token}, got ${this.#peek() ?? "the end"}`);
  }
}

const always =
  (value: unknown): Expression =>
  () =>
    value;

function select(owner: Expression, name: string): Expression {
  return (scope) => {
    const value = owner(scope) as Scope;
    if (!(name in value)) throw new Error(`no such key: ${name}`);
    return value[name];
  };
}

function ofOneType(values: readonly unknown[]): readonly unknown[] {
  const types = new Set(
    values.map((value) => (value instanceof Message ? value.type : typeof value)),
  );
  if (types.size > 1) throw new Error(`values of several types: ${[...types].join(", ")}`);
  return values;
}

type Operator = (left: Expression, right: Expression, scope: Scope) => unknown;

const OPERATORS: readonly (readonly [string, Operator])[] = [
  ["||", (left, right, scope) => left(scope) === true || right(scope) === true],
  ["&&", (left, right, scope) => left(scope) === true && right(scope) === true],
  ["==", (left, right, scope) => left(scope) === right(scope)],
  ["+", (left, right, scope) => [...(left(scope) as []), ...(right(scope) as [])]],
];
