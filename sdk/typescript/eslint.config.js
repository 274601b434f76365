import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["compiled-*/", "dist/"] },
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  {
    files: ["src/**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { project: "tsconfig.build.json", tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/no-confusing-void-expression": "off", // ending a function with a call is clear
      "@typescript-eslint/no-non-null-assertion": "off",
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
    },
  },
  { files: ["**/*.mjs"], extends: [tseslint.configs.strict] },
);
