import ts from 'typescript'

/** One import or re-export of a module, as written. */
export interface ImportEdge {
  readonly specifier: string
  /** Nothing of it is left at run time. */
  readonly typeOnly: boolean
  /** The names taken, as the other module calls them; empty for `*`, a side effect or a dynamic import. */
  readonly names: readonly string[]
  readonly line: number
}

/** Name of what a module exports, `*` with its source for a re-export of everything. */
export interface ExportedName {
  readonly name: string
  readonly kind: 'value' | 'type'
  /** The module a `*` comes from. */
  readonly from?: string
}

/** A dotted global that is used, such as `Date.now` or `setTimeout`. */
export interface GlobalUse {
  readonly name: string
  readonly line: number
}

/** What the rules need to know of one file. */
export interface SourceFile {
  /** From the root of the repository, with `/`. */
  readonly path: string
  readonly lines: number
  readonly imports: readonly ImportEdge[]
  readonly exports: readonly ExportedName[]
  readonly globals: readonly GlobalUse[]
}

/** Reads one TypeScript file: syntax only, so that it needs neither the disk nor other files. */
export function readSource(path: string, text: string): SourceFile {
  const tree = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const imports: ImportEdge[] = []
  const exports: ExportedName[] = []
  const globals: GlobalUse[] = []
  const lineOf = (node: ts.Node) => tree.getLineAndCharacterOfPosition(node.getStart(tree)).line + 1

  const visit = (node: ts.Node): void => {
    const edge = importOf(node)
    if (edge !== undefined) imports.push({ ...edge, line: lineOf(node) })
    const used = globalOf(node)
    if (used !== undefined) globals.push({ name: used, line: lineOf(node) })
    ts.forEachChild(node, visit)
  }
  visit(tree)
  for (const statement of tree.statements) exports.push(...exportsOf(statement))
  return { path, lines: text.split('\n').length - (text.endsWith('\n') ? 1 : 0), imports, exports, globals }
}

function importOf(node: ts.Node): Omit<ImportEdge, 'line'> | undefined {
  if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
    const typeOnly = node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword
    return { specifier: node.moduleSpecifier.text, typeOnly, names: namesOf(node.importClause?.namedBindings) }
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined && ts.isStringLiteral(node.moduleSpecifier)) {
    return { specifier: node.moduleSpecifier.text, typeOnly: node.isTypeOnly, names: namesOf(node.exportClause) }
  }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument) && ts.isStringLiteral(node.argument.literal)) {
    return { specifier: node.argument.literal.text, typeOnly: true, names: [] }
  }
  if (ts.isCallExpression(node) && isLoader(node.expression)) {
    const [target] = node.arguments
    if (target !== undefined && ts.isStringLiteralLike(target)) {
      return { specifier: target.text, typeOnly: false, names: [] }
    }
  }
  return undefined
}

function namesOf(bindings: ts.NamedImportBindings | ts.NamedExportBindings | undefined): string[] {
  if (bindings === undefined || ts.isNamespaceImport(bindings) || ts.isNamespaceExport(bindings)) return []
  return bindings.elements.map((one: ts.ImportSpecifier | ts.ExportSpecifier) => (one.propertyName ?? one.name).text)
}

function isLoader(callee: ts.Expression): boolean {
  return callee.kind === ts.SyntaxKind.ImportKeyword || (ts.isIdentifier(callee) && callee.text === 'require')
}

/** `a.b` or `a` where `a` is not a member, a key or a declaration: good enough to find globals by name. */
function globalOf(node: ts.Node): string | undefined {
  if (!ts.isIdentifier(node)) return undefined
  const { parent } = node
  if (ts.isPropertyAccessExpression(parent)) {
    if (parent.name === node) return undefined
    return `${node.text}.${parent.name.text}`
  }
  if (ts.isNewExpression(parent) && parent.expression === node && parent.arguments?.length === 0) {
    return `new ${node.text}()`
  }
  return ts.isCallExpression(parent) && parent.expression === node ? node.text : undefined
}

function exportsOf(statement: ts.Statement): ExportedName[] {
  if (ts.isExportDeclaration(statement)) return reExports(statement)
  const modifiers = ts.canHaveModifiers(statement) ? ts.getModifiers(statement) : undefined
  if (modifiers?.some((modifier) => modifier.kind === ts.SyntaxKind.ExportKeyword) !== true) return []
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.map((one) => ({ name: one.name.getText(), kind: 'value' }))
  }
  if (ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement)) {
    return [{ name: statement.name.text, kind: 'type' }]
  }
  if (ts.isFunctionDeclaration(statement) || ts.isClassDeclaration(statement)) {
    return [{ name: statement.name?.text ?? 'default', kind: 'value' }]
  }
  return [{ name: statement.getText().slice(0, 60), kind: 'value' }]
}

function reExports(statement: ts.ExportDeclaration): ExportedName[] {
  if (statement.exportClause === undefined) {
    const from = statement.moduleSpecifier
    if (from === undefined || !ts.isStringLiteral(from)) return []
    return [{ name: '*', kind: statement.isTypeOnly ? 'type' : 'value', from: from.text }]
  }
  if (ts.isNamespaceExport(statement.exportClause)) return [{ name: statement.exportClause.name.text, kind: 'value' }]
  return statement.exportClause.elements.map((one) => ({
    name: one.name.text,
    kind: statement.isTypeOnly || one.isTypeOnly ? 'type' : 'value',
  }))
}
