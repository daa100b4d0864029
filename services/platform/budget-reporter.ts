/** Who tells the gate how budgets stand: nobody else may tell facts of these names, and this one tells no others. */
export const budgetReporter = "cost-watch";

/** How names of such facts begin. */
export const budgetFactPrefix = "budget.";
