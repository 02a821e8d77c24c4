// Reloads the page or its style sheets when files of the project change (howdah dev).
(() => {
  let lost = false
  const styles = () => {
    for (const link of document.querySelectorAll('link[rel=stylesheet]')) {
      const address = new URL(link.href)
      if (address.origin !== location.origin) continue
      address.searchParams.set('howdah', Date.now())
      link.href = address.href
    }
  }
  const morph = async () => {
    const page = await fetch(location.href, { headers: { Accept: 'text/html' } })
    window.Idiomorph.morph(document.documentElement, await page.text())
  }
  const source = new EventSource('/.howdah/reload')
  source.onmessage = ({ data }) => {
    if (data.endsWith('.css')) styles()
    else if (window.Idiomorph) morph().catch(() => location.reload())
    else location.reload()
  }
  source.onerror = () => { lost = true }
  // The connection was lost; files may have changed since.
  source.onopen = () => { if (lost) location.reload() }
})()
