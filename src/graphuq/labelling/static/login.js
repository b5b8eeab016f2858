/** Sends name and password, and opens the page if they are right. */

const byId = (id) => document.getElementById(id);

byId("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = JSON.stringify({ user: byId("name").value, password: byId("password").value });
  const headers = { "Content-Type": "application/json" };
  byId("refusal").textContent = "";
  try {
    const answer = await fetch("/login", { method: "POST", headers, body });
    if (answer.ok) {
      location.assign("/");
      return;
    }
    byId("refusal").textContent = (await answer.json()).error;
  } catch {
    byId("refusal").textContent = "No connection: is graphuq still running?";
  }
  byId("password").value = "";
  byId("password").focus();
});
