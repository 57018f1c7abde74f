/** Chance as the adapters see it: one draw, uniform in [0, 1). The core gets draws as arguments. */
export interface Random {
  draw(): number;
}
