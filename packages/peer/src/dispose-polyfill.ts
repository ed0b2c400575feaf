// Node 20 has Symbol.asyncDispose since 20.4; other hosts may not. `await using` compiles to a look-up of these symbols.
const symbols = Symbol as { dispose?: symbol; asyncDispose?: symbol }
symbols.dispose ??= Symbol.for('Symbol.dispose')
symbols.asyncDispose ??= Symbol.for('Symbol.asyncDispose')

export {}
