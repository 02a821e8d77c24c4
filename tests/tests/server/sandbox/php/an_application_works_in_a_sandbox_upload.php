<?php
echo json_encode(move_uploaded_file($_FILES['f']['tmp_name'], __DIR__ . '/uploads/' . $_POST['as']));
