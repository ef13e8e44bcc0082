// A button that copies a text shows it marked in the field before it, for browsers that let nobody copy.
document.addEventListener("click", ({ target }) => {
  const button = target.closest("button[data-copy]");
  if (!button) return;
  button.parentElement.querySelector("input")?.select();
  navigator.clipboard?.writeText(button.dataset.copy).then(() => (button.textContent = "Copied"), () => {});
});
