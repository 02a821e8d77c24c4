<?php
echo $_POST['m'], ' ', file_get_contents($_FILES['f']['tmp_name'], length: 20), ' ', $_FILES['f']['size'];
