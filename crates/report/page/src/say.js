// What changes without the focus moving is told to those who do not see it.

let place;

export function say(text) {
  if (!place) {
    place = document.createElement("div");
    place.className = "unseen";
    place.setAttribute("role", "status");
    document.querySelector("main").append(place);
  }
  place.textContent = text;
}
