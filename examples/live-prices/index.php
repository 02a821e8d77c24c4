<?php
/**
 * Prices in one file: the page, and the form that changes one.
 */

const GOODS = ['apples', 'pears', 'plums'];

if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    $name = $_POST['name'] ?? '';
    $price = filter_var($_POST['price'] ?? '', FILTER_VALIDATE_FLOAT, ['options' => ['min_range' => 0, 'max_range' => 1000]]);
    if (!in_array($name, GOODS, true) || $price === false) {
        http_response_code(422);
        exit;
    }
    mercure_publish("prices/$name", json_encode(['name' => $name, 'price' => $price]), type: 'price');
    exit;
}
?>
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Prices</title>
<?php foreach (GOODS as $name): ?>
    <form data-name="<?= $name ?>">
        <label><?= $name ?> <input name="price" type="number" step="0.01" min="0"></label>
        <button>Change</button>
        <output></output>
    </form>
<?php endforeach ?>
<script>
    const source = new EventSource('/.well-known/mercure?topic=prices/{name}');
    source.addEventListener('price', ({data}) => {
        const {name, price} = JSON.parse(data);
        document.querySelector(`[data-name=${name}] output`).textContent = price.toFixed(2);
    });
    document.querySelectorAll('form').forEach((form) => form.onsubmit = (event) => {
        event.preventDefault();
        const {name} = form.dataset, price = form.price.value;
        fetch('/index.php', {method: 'POST', body: new URLSearchParams({name, price})});
    });
</script>
