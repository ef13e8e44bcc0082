// Settings of this browser, which are kept until its visitor logs out.
export const get = (name, usual) => localStorage.getItem(`ddq-${name}`) ?? usual;
export const set = (name, value) => localStorage.setItem(`ddq-${name}`, value);

// settings makes the boxes of a page that are settings say how they are, and change them.
export function settings(page) {
  for (const box of page.querySelectorAll("input[data-setting]")) {
    const { setting, usual } = box.dataset;
    box.checked = box.defaultChecked = get(setting, usual) === "on";
    box.disabled = false;
    box.addEventListener("change", () => set(setting, box.checked ? "on" : "off"));
  }
}
